#include "weir/store/memory/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>
#include <utility>

#include "weir/base/assert.h"

namespace weir {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Below this a table is too small for huge pages, or for touching memory ahead, to pay.
constexpr std::size_t kPopulateFrom = std::size_t{16} << 20;
// Touched ahead of growth: in one call of maintain(), and in all.
constexpr std::size_t kPopulateStep = std::size_t{4} << 20;
constexpr std::size_t kAheadMax = std::size_t{32} << 20;

constexpr std::uint32_t pages_in_chunk(unsigned order) {
  return Pages::kChunkLines >> order;
}

}  // namespace

Pages::Pages(Region region, std::size_t begin, bool huge) : region_(std::move(region)), begin_(begin), huge_(huge) {
  WEIR_ASSERT(begin % kChunkBytes == 0);
  // Less one: a reader with an old shape may look past the end of the last page.
  chunks_max_ = (region_.bytes_max() - begin) / kChunkBytes - 1;
  void* const raw = mmap(nullptr, chunks_max_ * sizeof(Chunk), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  WEIR_ASSERT(raw != MAP_FAILED);
  chunks_ = static_cast<Chunk*>(raw);  // all zero: unready
  if (region_.ready() > begin) chunks_ready_ = std::min((region_.ready() - begin) / kChunkBytes, chunks_max_);
  for (std::size_t i = 0; i < chunks_ready_; ++i) chunk(i).phase = Phase::free;  // until adopted
}

Pages::~Pages() {
  munmap(chunks_, chunks_max_ * sizeof(Chunk));
}

bool Pages::allocate(unsigned order, std::span<Line> pages) noexcept {
  WEIR_ASSERT(order <= kOrderMax);
  std::array<bool, 8> clean{};
  WEIR_ASSERT(pages.size() <= clean.size());
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (allocate_one(order, pages[i], clean[i])) continue;
      while (i-- > 0) release_one(order, pages[i]);
      return false;
    }
  }
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!clean[i]) zero(pages[i], order);
  }
  return true;
}

void Pages::release(unsigned order, std::span<const Line> pages) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Line page : pages) release_one(order, page);
}

bool Pages::allocate_one(unsigned order, Line& page, bool& clean) noexcept {
  std::size_t& lowest = lowest_[order];
  while (lowest < chunks_ready_ &&
         !(chunk(lowest).phase == Phase::in_use && chunk(lowest).order == order && chunk(lowest).free > 0)) {
    ++lowest;
  }
  if (lowest >= chunks_ready_ && !take_chunk(order)) return false;
  Chunk& from = chunk(lowest);
  for (std::size_t word = 0; word < kWords; ++word) {
    if (from.map[word] == ~std::uint64_t{0}) continue;
    const auto bit = static_cast<std::size_t>(std::countr_one(from.map[word]));
    from.map[word] |= std::uint64_t{1} << bit;
    --from.free;
    --spare_[order];
    page = first_line(lowest) + (static_cast<Line>(word * 64 + bit) << order);
    clean = from.clean;
    return true;
  }
  WEIR_ASSERT(false);
}

// Gives a free chunk to `order` and makes it the lowest with room.
bool Pages::take_chunk(unsigned order) noexcept {
  std::size_t& at = lowest_free_;
  while (at < chunks_ready_ && chunk(at).phase != Phase::free && chunk(at).phase != Phase::given_back) ++at;
  if (at == chunks_ready_) {
    if (at == chunks_max_ || !region_.extend(byte_offset(at + 1))) return false;
    chunk(at).clean = true;
    ++chunks_ready_;
  } else if (chunk(at).phase == Phase::given_back) {
    if (!region_.take_back(byte_offset(at), byte_offset(at + 1))) return false;
    given_back_ -= kChunkBytes;
    chunk(at).clean = true;
  }
  assign(at, order);
  lowest_[order] = at;
  grown_ = true;
  return true;
}

void Pages::assign(std::size_t at, unsigned order) noexcept {
  Chunk& taken = chunk(at);
  taken.phase = Phase::in_use;
  taken.order = static_cast<unsigned char>(order);
  taken.free = pages_in_chunk(order);
  spare_[order] += taken.free;
  // Bits past the chunk's last page stay set, so that the search for a clear one never finds them.
  for (std::size_t word = 0; word < kWords; ++word) {
    const std::size_t pages_before = word * 64;
    const std::size_t pages_here = taken.free > pages_before ? taken.free - pages_before : 0;
    taken.map[word] = pages_here >= 64 ? 0 : ~std::uint64_t{0} << pages_here;
  }
}

void Pages::release_one(unsigned order, Line page) noexcept {
  const std::size_t lines = page - first_line(0);
  const std::size_t at = lines / kChunkLines;
  Chunk& to = chunk(at);
  const std::size_t index = (lines % kChunkLines) >> order;
  WEIR_ASSERT(to.phase == Phase::in_use && to.order == order && (to.map[index / 64] >> (index % 64) & 1) != 0);
  to.map[index / 64] &= ~(std::uint64_t{1} << (index % 64));
  to.clean = false;
  lowest_[order] = std::min(lowest_[order], at);
  ++spare_[order];
  if (++to.free < pages_in_chunk(order)) return;
  spare_[order] -= to.free;
  to.phase = Phase::free;
  to.idle = false;
  lowest_free_ = std::min(lowest_free_, at);
}

bool Pages::adopt(unsigned order, Line page) noexcept {
  const std::lock_guard lock(mutex_);
  if (order > kOrderMax || page < first_line(0)) return false;
  const std::size_t lines = page - first_line(0);
  const std::size_t at = lines / kChunkLines;
  if (at >= chunks_ready_ || (lines & ((std::size_t{1} << order) - 1)) != 0) return false;
  Chunk& to = chunk(at);
  if (to.phase == Phase::free) assign(at, order);
  const std::size_t index = (lines % kChunkLines) >> order;
  if (to.order != order || (to.map[index / 64] >> (index % 64) & 1) != 0) return false;
  to.map[index / 64] |= std::uint64_t{1} << (index % 64);
  --to.free;
  --spare_[order];
  return true;
}

bool Pages::scattered(unsigned order, std::span<const Line> pages) const noexcept {
  const std::lock_guard lock(mutex_);
  // Groups grow at about the same time, so most pages of an order become free at once, and a few keep every chunk.
  if (spare_[order] <= pages_in_chunk(order)) return false;
  for (const Line page : pages) {
    const std::size_t at = (page - first_line(0)) / kChunkLines;
    if (at > lowest_[order] && chunk(at).free > pages_in_chunk(order) / 2) return true;
  }
  return false;
}

void Pages::finish_adopting() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < chunks_ready_; ++i) {
    if (chunk(i).phase == Phase::free) give_back(i);
  }
}

void Pages::give_back(std::size_t i) noexcept {
  region_.give_back(byte_offset(i), byte_offset(i + 1));
  chunk(i).phase = Phase::given_back;
  given_back_ += kChunkBytes;
}

bool Pages::maintain() noexcept {
  std::size_t from = 0;
  std::size_t to = 0;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t front = chunks_ready_ * kChunkBytes;
    for (std::size_t i = lowest_free_; i < chunks_ready_; ++i) {
      if (chunk(i).phase != Phase::free) continue;
      if (chunk(i).idle) give_back(i);
      chunk(i).idle = true;
    }
    const bool growing = std::exchange(grown_, false);
    if (!growing || front < kPopulateFrom) return false;
    from = std::max(populated_, front);
    to = std::min((front + std::clamp(front / 16, kHugePage, kAheadMax)) / kHugePage * kHugePage,
                  region_.bytes_max() - begin_);
    to = std::min(to, from + kPopulateStep);
    if (to <= from) return false;
    grown_ = true;
  }
  // Unlocked: touching pages takes milliseconds, and nobody else touches what is not ready.
  region_.populate(begin_ + from, begin_ + to, huge_);
  const std::lock_guard lock(mutex_);
  populated_ = to;
  return true;
}

std::size_t Pages::bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return begin_ + std::max(chunks_ready_ * kChunkBytes, populated_) - given_back_;
}

void Pages::zero(Line page, unsigned order) noexcept {
  // Atomic, because a reader with an old record may still look; relaxed, because it can only miss.
  auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(data() + std::size_t{page} * kLineBytes);
  const std::size_t count = (kLineBytes << order) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < count; ++i) words[i].store(0, std::memory_order_relaxed);
}

}  // namespace weir
