// The requests that one limit decided, ordered by time, to be replayed repeatedly with other numbers. Beyond a bounded
// amount of memory they are written to an unlinked temporary file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir::simulate {

struct SpooledRequest {
  std::int64_t time_ns = 0;
  std::uint32_t client = 0;  // its place in the ClientTable
  std::uint32_t cost = 0;    // 0: from here on, the place belongs to another client
};

class Spool {
 public:
  explicit Spool(std::size_t memory_bytes_max = bounds::log_spool_memory_bytes_max)
      : memory_max_(memory_bytes_max / sizeof(SpooledRequest)) {}
  ~Spool();
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;

  // Fails if the temporary file cannot be made or written. Then the spool drops everything and stays empty.
  Result<void> add(const SpooledRequest& request);
  // Calls `visit` with all requests, some at a time, until it returns false. Fails if the file cannot be read.
  Result<void> each(const std::function<bool(std::span<const SpooledRequest>)>& visit);

  std::uint64_t size() const noexcept { return written_ + memory_.size(); }

 private:
  Result<void> write_out();
  Error fail(const char* what);

  std::size_t memory_max_;
  std::vector<SpooledRequest> memory_;  // the latest ones
  std::uint64_t written_ = 0;           // in the file
  int file_ = -1;
  bool failed_ = false;
};

}  // namespace weir::simulate
