// Writers, blockers and readers at once: whoever was told of a change sees it, and nobody sees half of one.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "weir/server/known_keeper.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Wall kNow{1000s};
constexpr int kRounds = 2000;

TEST(KnownKeeperStress, AChangeIsSeenByEveryReaderThatLooksAfterIt) {
  KnownKeeper keeper;
  std::atomic<std::int64_t> told{0};  // the burst of the last adjustment that was acknowledged
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> changes_seen{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      Reader<Known> reader(keeper.known());
      while (!over.load()) {
        const std::int64_t promised = told.load();
        if (reader.refresh()) changes_seen.fetch_add(1);
        const Adjustment* const found = reader.get()->adjustments().find({"orders", "7"}, kNow);
        ASSERT_TRUE(promised == 0 || (found != nullptr && *found->burst >= promised));
        // Count and burst are written together.
        ASSERT_TRUE(found == nullptr || *found->count == *found->burst);
        looks.fetch_add(1);
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; !over.load(); ++i) {
      AccessEntry entry;
      entry.apikey = std::to_string(i % 100);
      entry.expires = kNow + 1h;
      keeper.block(entry);
      if (i % 50 == 0) keeper.tick(kNow);
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    Adjustment one;
    one.limit = "orders";
    one.id = "7";
    one.burst = one.count = i;
    one.expires = kNow + 1h;
    ASSERT_TRUE(keeper.adjust(one, kNow));
    told.store(i);
    if (i % 100 == 0) std::this_thread::yield();
  }
  while (looks.load() < 1000) std::this_thread::yield();
  over.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(changes_seen.load(), 0u) << "no reader ever met a change: the test shows nothing";
  EXPECT_LE(keeper.entries(AccessEntry::List::deny, kNow).size(), 100u);
}

}  // namespace
}  // namespace weir
