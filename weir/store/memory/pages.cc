#include "weir/store/memory/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

#include "weir/base/assert.h"

namespace weir {
namespace {

// A smaller table does not benefit from huge pages or from populating memory ahead.
constexpr std::size_t kPopulateFrom = std::size_t{16} << 20;
// How much memory is populated ahead of growth: per call of maintain(), and in total.
constexpr std::size_t kPopulateStep = std::size_t{4} << 20;
constexpr std::size_t kAheadMax = std::size_t{32} << 20;

constexpr std::uint32_t pages_in_chunk(unsigned order) {
  return Pages::kChunkLines >> order;
}

}  // namespace

void Pages::ChunkSet::insert(std::size_t i) noexcept {
  words[i / 64] |= std::uint64_t{1} << (i % 64);
  lowest_word = std::min(lowest_word, i / 64);
}

void Pages::ChunkSet::erase(std::size_t i) noexcept {
  words[i / 64] &= ~(std::uint64_t{1} << (i % 64));
}

std::size_t Pages::ChunkSet::lowest(std::size_t end) noexcept {
  while (lowest_word * 64 < end && words[lowest_word] == 0) ++lowest_word;
  if (lowest_word * 64 >= end) return end;
  return lowest_word * 64 + static_cast<std::size_t>(std::countr_zero(words[lowest_word]));
}

Pages::Pages(Region region, std::size_t begin, bool huge)
    : region_(std::move(region)), begin_(begin), huge_(huge && !region_.in_file()) {
  WEIR_ASSERT(begin % kChunkBytes == 0);
  // Minus one, because a reader with an old shape may read past the end of the last page.
  chunks_max_ = (region_.bytes_max() - begin) / kChunkBytes - 1;
  const std::size_t set_words = chunks_max_ / 64 + 1;
  const std::size_t sets_bytes = (with_room_.size() + 1) * set_words * sizeof(std::uint64_t);
  books_bytes_ = sets_bytes + chunks_max_ * sizeof(Chunk);
  books_ = mmap(nullptr, books_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  WEIR_ASSERT(books_ != MAP_FAILED);
  // All zero: sets empty, chunks unready.
  auto* words = static_cast<std::uint64_t*>(books_);
  for (ChunkSet& set : with_room_) set.words = std::exchange(words, words + set_words);
  free_.words = std::exchange(words, words + set_words);
  chunks_ = reinterpret_cast<Chunk*>(words);
  if (region_.ready() > begin) chunks_ready_ = std::min((region_.ready() - begin) / kChunkBytes, chunks_max_);
  for (std::size_t i = 0; i < chunks_ready_; ++i) {
    chunk(i).phase = Phase::free;  // until adopted
    free_.insert(i);
  }
}

Pages::~Pages() {
  munmap(books_, books_bytes_);
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
  ChunkSet& with_room = with_room_[order];
  std::size_t at = with_room.lowest(chunks_ready_);
  if (at == chunks_ready_) {
    if (!take_chunk(order)) return false;
    at = with_room.lowest(chunks_ready_);
  }
  Chunk& from = chunk(at);
  for (std::size_t word = 0; word < kWords; ++word) {
    if (from.map[word] == ~std::uint64_t{0}) continue;
    const auto bit = static_cast<std::size_t>(std::countr_one(from.map[word]));
    from.map[word] |= std::uint64_t{1} << bit;
    if (--from.free == 0) with_room.erase(at);
    --spare_[order];
    page = first_line(at) + (static_cast<Line>(word * 64 + bit) << order);
    clean = from.clean;
    return true;
  }
  WEIR_ASSERT(false);
}

// Gives the lowest free chunk to `order`.
bool Pages::take_chunk(unsigned order) noexcept {
  std::size_t at = free_.lowest(chunks_ready_);
  if (at == chunks_ready_) {
    // Skip the chunks that maintain() is populating, unless none follows them: then waiting for the page is better.
    if (touching_from_ <= at && at < touching_to_ && touching_to_ < chunks_max_) at = touching_to_;
    if (at >= chunks_max_ || !region_.extend(byte_offset(at + 1))) return false;
    chunk(at).clean = true;
    chunks_ready_ = at + 1;
  } else if (chunk(at).phase == Phase::given_back) {
    if (!region_.take_back(byte_offset(at), byte_offset(at + 1))) return false;
    given_back_ -= kChunkBytes;
  }
  assign(at, order);
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
  free_.erase(at);
  with_room_[order].insert(at);
}

void Pages::release_one(unsigned order, Line page) noexcept {
  const std::size_t lines = page - first_line(0);
  const std::size_t at = lines / kChunkLines;
  Chunk& to = chunk(at);
  const std::size_t index = (lines % kChunkLines) >> order;
  WEIR_ASSERT(to.phase == Phase::in_use && to.order == order && (to.map[index / 64] >> (index % 64) & 1) != 0);
  to.map[index / 64] &= ~(std::uint64_t{1} << (index % 64));
  to.clean = false;
  with_room_[order].insert(at);
  ++spare_[order];
  if (++to.free < pages_in_chunk(order)) return;
  spare_[order] -= to.free;
  with_room_[order].erase(at);
  to.phase = Phase::free;
  to.idle = false;
  free_.insert(at);
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
  if (--to.free == 0) with_room_[order].erase(at);
  --spare_[order];
  return true;
}

bool Pages::scattered(unsigned order, std::span<const Line> pages) noexcept {
  const std::lock_guard lock(mutex_);
  // Groups grow at about the same time, so most pages of an order become free at once, and the few others keep every
  // chunk in use.
  if (spare_[order] <= pages_in_chunk(order)) return false;
  const std::size_t lowest = with_room_[order].lowest(chunks_ready_);
  for (const Line page : pages) {
    const std::size_t at = (page - first_line(0)) / kChunkLines;
    if (at > lowest && chunk(at).free > pages_in_chunk(order) / 2) return true;
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
  chunk(i).clean = region_.give_back(byte_offset(i), byte_offset(i + 1));
  chunk(i).phase = Phase::given_back;
  given_back_ += kChunkBytes;
}

// Gives back chunks that were not used since the last call. A huge page is given back only when all of it is free,
// because giving back a part would split it permanently.
void Pages::give_back_idle() noexcept {
  for (std::size_t i = free_.lowest(chunks_ready_); i < chunks_ready_;) {
    const std::size_t huge_page = byte_offset(i) / kHugePage * kHugePage;
    const std::size_t first = huge_page > begin_ ? (huge_page - begin_) / kChunkBytes : 0;
    const std::size_t end = std::min((huge_page + kHugePage - begin_) / kChunkBytes, chunks_ready_);
    bool used = false;
    for (std::size_t j = std::max(first, huge_from_); j < end; ++j) {
      used = used || chunk(j).phase == Phase::in_use || (chunk(j).phase == Phase::free && !chunk(j).idle);
    }
    for (; i < end; ++i) {
      if (chunk(i).phase != Phase::free) continue;
      if (chunk(i).idle && (!used || i < huge_from_)) give_back(i);
      chunk(i).idle = true;
    }
  }
}

bool Pages::maintain() noexcept {
  std::size_t from = 0;
  std::size_t to = 0;
  {
    const std::lock_guard lock(mutex_);
    give_back_idle();
    const std::size_t front = chunks_ready_ * kChunkBytes;
    const bool growing = std::exchange(grown_, false);
    if (!growing || front < kPopulateFrom) return false;
    from = std::max(populated_, front);
    // Ends at a huge page boundary in the region: the kernel does not use a huge page for part of one.
    const std::size_t ahead = std::clamp(front / 16, kHugePage, kAheadMax);
    const std::size_t end = std::min(begin_ + front + ahead, begin_ + from + kPopulateStep) / kHugePage * kHugePage;
    to = std::min(end, region_.bytes_max()) - begin_;
    if (to <= from) return false;
    grown_ = true;
    if (huge_) {
      touching_from_ = from / kChunkBytes;
      touching_to_ = to / kChunkBytes;
      huge_from_ = std::min(huge_from_, touching_from_);
    }
  }
  // Unlocked, because populating pages takes milliseconds.
  region_.populate(begin_ + from, begin_ + to, huge_);
  const std::lock_guard lock(mutex_);
  populated_ = to;
  // Chunks that allocations skipped meanwhile are available now.
  for (std::size_t i = touching_from_; i < std::min(touching_to_, chunks_ready_); ++i) {
    if (chunk(i).phase != Phase::unready) continue;
    chunk(i).phase = Phase::free;
    chunk(i).clean = true;
    chunk(i).idle = false;
    free_.insert(i);
  }
  touching_from_ = touching_to_ = 0;
  return true;
}

std::size_t Pages::bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return begin_ + std::max(chunks_ready_ * kChunkBytes, populated_) - given_back_;
}

void Pages::zero(Line page, unsigned order) noexcept {
  // Atomic, because a reader with an old record may still read the page. Release, because such a reader must then see
  // that its record is old.
  auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(data() + std::size_t{page} * kLineBytes);
  const std::size_t count = (kLineBytes << order) / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < count; ++i) words[i].store(0, std::memory_order_release);
}

}  // namespace weir
