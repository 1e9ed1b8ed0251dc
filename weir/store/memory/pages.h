// Allocates pages of 64 bytes to 64 KiB from a region. A page is identified by its line: its offset from the region's
// start in lines of 64 bytes. Memory is divided into chunks. A chunk serves one page size at a time; when all its pages
// are free, it can serve another size or return to the system. The lowest chunk with room is used first, so that after
// shrinking the remaining pages are close together.
//
// The allocator's own state does not survive a restart. Only the owner knows which pages are in use, so it calls
// adopt() for each of them after a restart.
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
  static constexpr unsigned kOrderMax = 10;  // a page has 1 << order lines
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
  static constexpr Line kChunkLines = kChunkBytes / kLineBytes;

  // Chunks start at `begin`, a multiple of kChunkBytes. Everything before it belongs to the owner.
  Pages(Region region, std::size_t begin, bool huge);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Fills `pages` with zeroed pages of one order, all or none.
  bool allocate(unsigned order, std::span<Line> pages) noexcept;
  void release(unsigned order, std::span<const Line> pages) noexcept;
  // Returns true if the owner should move the content of these pages to new ones: too many pages of their order are
  // free, and one of these pages keeps a mostly empty chunk from being returned to the system.
  bool scattered(unsigned order, std::span<const Line> pages) noexcept;
  // After a restart: marks this page as in use. Returns false if it is out of range, misaligned or overlaps another.
  bool adopt(unsigned order, Line page) noexcept;
  // Call after the last adopt(): returns to the system chunks that were not adopted.
  void finish_adopting() noexcept;

  // Call it off the request path. Prepares the memory that the next seconds of growth need, and returns chunks to the
  // system that have stayed free since the last call. Does a bounded amount of work; returns true if there is more to
  // do.
  bool maintain() noexcept;

  const Region& region() const noexcept { return region_; }
  char* data() const noexcept { return region_.data(); }
  // Ready memory minus what was given back, including the owner's part.
  std::size_t bytes() const noexcept;

 private:
  enum class Phase : unsigned char { unready, free, given_back, in_use };

  static constexpr std::size_t kWords = kChunkLines / 64;

  struct Chunk {
    Phase phase;
    unsigned char order;
    bool clean;                 // its free pages are zero: none was released since it was new or given back
    bool idle;                  // free since before the last maintain()
    std::uint32_t free;         // free pages, while in use
    std::uint64_t map[kWords];  // 1 = page in use
  };

  // A set of chunks. Finding the lowest member reads one word per 64 chunks.
  struct ChunkSet {
    std::uint64_t* words = nullptr;
    std::size_t lowest_word = 0;  // no word before this has a member

    void insert(std::size_t i) noexcept;
    void erase(std::size_t i) noexcept;
    // Returns the lowest member below `end`, or `end`.
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
  // The chunks and the sets are in a separate mapping, which is touched only as far as the region grows.
  void* books_ = nullptr;
  std::size_t books_bytes_ = 0;
  Chunk* chunks_ = nullptr;
  std::array<ChunkSet, kOrderMax + 1> with_room_{};  // by order
  ChunkSet free_;                                    // free or given back
  std::array<std::size_t, kOrderMax + 1> spare_{};   // free pages in chunks in use, by order
  std::size_t chunks_max_ = 0;
  std::size_t chunks_ready_ = 0;  // chunks before this were populated at least once
  std::size_t given_back_ = 0;
  std::size_t populated_ = 0;  // bytes from begin_ that maintain() has populated
  // Chunks from here on are in huge pages, as far as maintain() has populated them; chunks before it are in ordinary
  // pages.
  std::size_t huge_from_ = SIZE_MAX;
  // Chunks that maintain() is populating with huge pages right now. An allocation that would take one of them takes a
  // later chunk instead.
  std::size_t touching_from_ = 0;
  std::size_t touching_to_ = 0;
  bool grown_ = false;  // a chunk was taken since the last maintain()
};

}  // namespace weir
