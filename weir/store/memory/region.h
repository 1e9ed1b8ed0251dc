// The memory of a table: one range of addresses that is reserved once, made usable from the front and never moved, so
// that reading through a stale address is always safe. Anonymous, or shared with a file that survives the process.
//
// Thread safety: none; the table's page allocator calls it under its own lock.
#pragma once

#include <cstddef>

#include "weir/base/result.h"

namespace weir {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Region {
 public:
  // Reserves `bytes_max` of address space; nothing is resident yet.
  static Result<Region> anonymous(std::size_t bytes_max);
  // The same over a file that the caller opened and locked. The file's content counts as ready. Owns neither the file
  // nor the lock.
  static Result<Region> shared(int fd, std::size_t bytes_max);

  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  char* data() const noexcept { return data_; }
  std::size_t ready() const noexcept { return ready_; }
  std::size_t bytes_max() const noexcept { return bytes_max_; }
  bool in_file() const noexcept { return fd_ >= 0; }

  // Makes [0, bytes) usable; new memory is zero. Returns false if the file system is full or bytes_max is exceeded.
  // Allocates a file's blocks here, because writing to a hole in a full tmpfs raises SIGBUS.
  bool extend(std::size_t bytes) noexcept;

  // Populates [from, to), ready or not, so that no request takes the page faults. With `huge`, uses 2 MiB pages if the
  // kernel provides them.
  void populate(std::size_t from, std::size_t to, bool huge) noexcept;

  // Maps the file's content in [from, to) for reading, all at once instead of page by page. Returns false if that is
  // impossible or the kernel does not support it.
  bool make_readable(std::size_t from, std::size_t to) const noexcept;

  // give_back() returns [from, to) to the system. The range stays readable; call take_back() before writing to it.
  // Returns true if the range is zero afterwards, false if the system refused (locked memory, or a file system without
  // holes).
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
