#include "weir/store/memory/pages.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>

namespace weir::pages_test {
namespace {

constexpr std::size_t kRegionBytes = std::size_t{64} << 20;
// All but the last, which is reserved for readers that read past the end.
constexpr std::size_t kChunks = kRegionBytes / Pages::kChunkBytes - 1;

// Returns a page that fills a chunk, or 0.
Line allocate_chunk(Pages& pages) {
  std::array<Line, 1> page{};
  return pages.allocate(Pages::kOrderMax, page) ? page[0] : Line{0};
}

struct Filled {
  std::set<Line> pages;
  bool passed_over = false;  // an allocation skipped a chunk
};

// Allocates everything while another thread populates memory.
Filled fill(Pages& pages) {
  Filled filled;
  std::atomic<bool> full = false;
  std::thread maintaining([&] {
    while (!full) (void)pages.maintain();
  });
  Line last = 0;
  while (const Line page = allocate_chunk(pages)) {
    EXPECT_TRUE(filled.pages.insert(page).second) << "given out twice: " << page;
    filled.passed_over |= last != 0 && page != last + Pages::kChunkLines;
    last = page;
    std::this_thread::yield();
  }
  full = true;
  maintaining.join();
  // The chunks that were being populated when the region was used up.
  while (const Line page = allocate_chunk(pages)) EXPECT_TRUE(filled.pages.insert(page).second) << page;
  return filled;
}

TEST(Pages, PassOverWhatIsBeingMadeReadyAndLoseNoneOfIt) {
  constexpr int kRoundsMax = 200;
  bool passed_over = false;
  for (int round = 0; round < kRoundsMax && !passed_over; ++round) {
    auto region = Region::anonymous(kRegionBytes);
    ASSERT_TRUE(region);
    // Line 0 is not allocated: here it means none.
    Pages pages(std::move(*region), Pages::kChunkBytes, true);
    const Filled filled = fill(pages);
    EXPECT_EQ(filled.pages.size(), kChunks - 1);
    passed_over = filled.passed_over;
  }
  EXPECT_TRUE(passed_over) << "no round saw a request meet maintain()";
}

}  // namespace
}  // namespace weir::pages_test
