// Sorts the lines of a log by time. Servers write a line when a request ends, so lines may be out of order by as long
// as a request takes. In: packed lines with their times. Out: the same lines ordered by time; lines of equal time are
// spread evenly over the log's resolution. A line that is late by more than the window is refused.
//
// Lines wait in a ring of slots, each a fraction of the window; a slot is sorted when it is released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/time.h"

namespace weir::simulate {

enum class Spread : unsigned char { even, none };

class LogOrder {
 public:
  using Release = std::function<void(Wall time, std::string_view packed)>;

  LogOrder(Duration window, Spread spread, Release release,
           std::size_t pending_bytes_max = bounds::log_pending_bytes_max);

  // Returns false if the line is too late. May release earlier lines. REQUIRES: time is not before 1970.
  bool add(Wall time, Duration resolution, std::string_view packed);
  // Releases all waiting lines.
  void finish();

  // Slots that were released early because too many bytes were waiting.
  std::uint64_t hurried() const noexcept { return hurried_; }

 private:
  struct Waiting {
    Wall time;
    std::uint32_t offset;
    std::uint32_t size;
  };
  struct Slot {
    std::string bytes;
    std::vector<Waiting> lines;
  };

  std::int64_t slot_of(Wall time) const noexcept { return time.time_since_epoch().count() >> shift_; }
  std::unique_ptr<Slot>& at(std::int64_t slot) noexcept { return ring_[static_cast<std::size_t>(slot) & mask_]; }
  void release_before(std::int64_t slot);
  void release(Slot& slot);

  Duration window_;
  Spread spread_;
  Release release_;
  std::size_t pending_bytes_max_;
  int shift_ = 20;  // a slot is 2^shift_ nanoseconds
  std::size_t mask_;
  std::vector<std::unique_ptr<Slot>> ring_;
  std::vector<std::unique_ptr<Slot>> spare_;
  std::size_t pending_bytes_ = 0;
  std::size_t pending_lines_ = 0;
  std::int64_t next_ = -1;  // the first slot not yet released; -1: nothing was added
  Wall newest_{};
  Duration resolution_ = std::chrono::seconds{1};  // the finest seen
  std::uint64_t hurried_ = 0;
};

}  // namespace weir::simulate
