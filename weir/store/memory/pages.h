// Hands out pages of 64 bytes to 64 KiB from a region. A page is named by its line: its offset in lines of 64 bytes
// from the region's start. Memory is cut into chunks; a chunk serves one page size at a time and, when all its pages
// are free, any other, or the system. The lowest chunk with room is used first, so that what is left after shrinking
// lies together.
//
// What is in use is known to the owner of the pages alone: after a restart it calls adopt() for each, and nothing about
// the allocator itself needs to survive.
//
// Thread safety: every function locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "weir/store/memory/region.h"

namespace weir {

using Line = std::uint32_t;

inline constexpr std::size_t kLineBytes = 64;

class Pages {
 public:
  static constexpr unsigned kOrderMax = 10;  // a page holds 1 << order lines
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
  static constexpr Line kChunkLines = kChunkBytes / kLineBytes;

  // Chunks start at `begin`, a multiple of kChunkBytes; everything below belongs to the owner.
  Pages(Region region, std::size_t begin, bool huge);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Fills `pages` with zeroed pages of one order, all or none.
  bool allocate(unsigned order, std::span<Line> pages) noexcept;
  void release(unsigned order, std::span<const Line> pages) noexcept;
  // True if the owner should move what is in these pages to new ones: too much of their order is free, and one of them
  // keeps a chunk from the system that is mostly empty.
  bool scattered(unsigned order, std::span<const Line> pages) noexcept;
  // After a restart: this page is in use. False if it cannot be: outside, misaligned, or overlapping another.
  bool adopt(unsigned order, Line page) noexcept;
  // Call after the last adopt(): returns to the system chunks that were not adopted.
  void finish_adopting() noexcept;

  // Off the request path: makes ready what the next seconds of growth need, and gives back chunks that have stayed free
  // since the last call. One call does a bounded amount of work; true if there is more to do.
  bool maintain() noexcept;

  const Region& region() const noexcept { return region_; }
  char* data() const noexcept { return region_.data(); }
  // Ready memory less what was given back, the owner's part included.
  std::size_t bytes() const noexcept;

 private:
  enum class Phase : unsigned char { unready, free, given_back, in_use };

  static constexpr std::size_t kWords = kChunkLines / 64;

  struct Chunk {
    Phase phase;
    unsigned char order;
    bool clean;                 // its free pages are zero: never released into since it was new or given back
    bool idle;                  // free since before the last maintain()
    std::uint32_t free;         // pages free, while in use
    std::uint64_t map[kWords];  // 1 = page in use
  };

  // A set of chunks whose lowest member is found by looking at one word in 64 chunks.
  struct ChunkSet {
    std::uint64_t* words = nullptr;
    std::size_t lowest_word = 0;  // none below has a member

    void insert(std::size_t i) noexcept;
    void erase(std::size_t i) noexcept;
    // The lowest member below `end`, or `end`.
    std::size_t lowest(std::size_t end) noexcept;
  };

  Chunk& chunk(std::size_t i) const noexcept { return chunks_[i]; }
  Line first_line(std::size_t i) const noexcept { return static_cast<Line>(begin_ / kLineBytes + i * kChunkLines); }
  std::size_t byte_offset(std::size_t i) const noexcept { return begin_ + i * kChunkBytes; }
  bool take_chunk(unsigned order) noexcept;
  void assign(std::size_t at, unsigned order) noexcept;
  void give_back(std::size_t i) noexcept;
  void give_back_idle() noexcept;
  bool allocate_one(unsigned order, Line& page, bool& clean) noexcept;
  void release_one(unsigned order, Line page) noexcept;
  void zero(Line page, unsigned order) noexcept;

  mutable std::mutex mutex_;
  Region region_;
  std::size_t begin_;
  bool huge_;
  // Both live in memory of their own that is touched only as far as the region grows.
  void* books_ = nullptr;
  std::size_t books_bytes_ = 0;
  Chunk* chunks_ = nullptr;
  std::array<ChunkSet, kOrderMax + 1> with_room_{};  // by order
  ChunkSet free_;                                    // free or given back
  std::array<std::size_t, kOrderMax + 1> spare_{};   // free pages in chunks in use, by order
  std::size_t chunks_max_ = 0;
  std::size_t chunks_ready_ = 0;  // chunks below were populated at least once
  std::size_t given_back_ = 0;
  std::size_t populated_ = 0;  // bytes from begin_ that maintain() has touched
  // Chunks from here on are in huge pages, as far as maintain() has touched them; those below are in ordinary ones.
  std::size_t huge_from_ = SIZE_MAX;
  // Chunks that maintain() is touching in huge pages right now: whoever wants one of them takes one behind them.
  std::size_t touching_from_ = 0;
  std::size_t touching_to_ = 0;
  bool grown_ = false;  // a chunk was taken since the last maintain()
};

}  // namespace weir
