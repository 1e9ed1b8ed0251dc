// The memory a table lives in: one range of addresses reserved once, made usable from its front, never moved, so that a
// reader holding an old address always reads something. Anonymous, or shared with a file that survives the process.
//
// Thread safety: none of its own; the table's page allocator calls it under its lock.
#pragma once

#include <cstddef>

#include "weir/base/result.h"

namespace weir {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Region {
 public:
  // Reserves `bytes_max` of address space; nothing is resident yet.
  static Result<Region> anonymous(std::size_t bytes_max);
  // The same over a file that the caller opened and locked; takes what the file holds as ready. Owns neither.
  static Result<Region> shared(int fd, std::size_t bytes_max);

  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  char* data() const noexcept { return data_; }
  std::size_t ready() const noexcept { return ready_; }
  std::size_t bytes_max() const noexcept { return bytes_max_; }
  bool in_file() const noexcept { return fd_ >= 0; }

  // Makes [0, bytes) usable and zero where it is new. False if there is no space: the file system is full, or
  // bytes_max. A file gets its blocks here, because a store into a hole of a full tmpfs is a SIGBUS.
  bool extend(std::size_t bytes) noexcept;

  // Touches [from, to), ready or not yet, so that no request has to; with `huge` in 2 MiB pages where the kernel gives
  // them.
  void populate(std::size_t from, std::size_t to, bool huge) noexcept;

  // Makes what the file holds in [from, to) ready to be read, all at once instead of page by page. False where that
  // cannot be, or the kernel does not know how.
  bool make_readable(std::size_t from, std::size_t to) const noexcept;

  // Returns [from, to) to the system. It stays readable; a writer must take it back first. True if it is zero then;
  // false where the system would not have it: the memory is locked, the file system knows no holes.
  bool give_back(std::size_t from, std::size_t to) noexcept;
  bool take_back(std::size_t from, std::size_t to) noexcept;

 private:
  Region(char* data, std::size_t bytes_max, int fd) noexcept : data_(data), bytes_max_(bytes_max), fd_(fd) {}

  char* data_ = nullptr;
  std::size_t bytes_max_ = 0;
  std::size_t ready_ = 0;
  int fd_ = -1;
};

}  // namespace weir
