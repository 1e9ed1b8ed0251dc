// How many buckets one event loop may have in flight to one Redis. Keeps Redis's queue short enough that replies take
// at most a target time, so that a flood waits here, where it can be served fairly, and not there.
//
// The target is timeout/16, at least twice the shortest reply time seen and at most timeout/4. Once per round (from
// sending questions to their last reply) the window grows if it was used and replies were fast enough, and shrinks in
// proportion if they were not. While a reply is late, the window shrinks with its age, so that a Redis that suddenly
// slows down is not sent what it cannot answer in time.
//
// Time is passed in; no I/O. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weir/base/bounds.h"
#include "weir/base/time.h"

namespace weir::redis {

class FlightWindow {
 public:
  explicit FlightWindow(Duration timeout) noexcept : timeout_(timeout) {}

  // True if so many buckets may be sent now, behind `ahead` that are about to be. Whatever its size, one question may
  // always be in flight.
  bool admits(std::size_t buckets, std::size_t ahead, Time now) const noexcept {
    const std::size_t before = in_flight() + ahead;
    return before == 0 || before + buckets <= size(now);
  }

  void sent(std::size_t buckets, Time now) noexcept {
    if (buckets == 0) return;
    sent_ += buckets;
    // Until the first reply, what is sent belongs to the round: the first of many would be answered too soon.
    if (round_end_ != 0 && landed_ != round_landed_) return;
    if (round_end_ == 0) {
      round_began_ = now;
      round_landed_ = landed_;
      began_idle_ = in_flight() == buckets;
    }
    round_end_ = sent_;
    used_ = in_flight();
  }

  // Redis replied to so many.
  void landed(std::size_t buckets, Time now) noexcept {
    // The first reply of a round that began with nothing in flight waited behind no other.
    if (round_end_ != 0 && landed_ == round_landed_ && began_idle_) {
      shortest_ = std::min(shortest_, std::max(now - round_began_, Duration{1}));
    }
    landed_ += buckets;
    if (round_end_ == 0 || landed_ < round_end_) return;
    end_round(std::max(now - round_began_, Duration{1}));
  }

  // The connection is gone, and so many with it: says nothing about how fast Redis is.
  void lost(std::size_t buckets) noexcept {
    landed_ += buckets;
    round_end_ = 0;
  }

  std::size_t in_flight() const noexcept { return static_cast<std::size_t>(sent_ - landed_); }

  std::size_t size(Time now) const noexcept { return round_end_ == 0 ? size_ : shrunk(now - round_began_); }

  Duration target() const noexcept {
    const Duration at_least = shortest_ == Duration::max() ? Duration::zero() : 2 * shortest_;
    return std::min(std::max(timeout_ / 16, at_least), timeout_ / 4);
  }

 private:
  // In proportion to how far a reply of that age is beyond the target.
  std::size_t shrunk(Duration reply) const noexcept {
    if (reply <= target()) return size_;
    const auto share = static_cast<std::int64_t>(size_) * target().count() / reply.count();
    return std::max(static_cast<std::size_t>(share), bounds::flight_window_min);
  }

  void end_round(Duration reply) noexcept {
    if (reply > target()) {
      size_ = shrunk(reply);
    } else if (used_ >= size_ / 2) {
      size_ = std::min(reply <= target() / 2 ? size_ * 2 : size_ + kStep, bounds::flight_window_max);
    }
    round_end_ = 0;
  }

  static constexpr std::size_t kStep = 16;

  Duration timeout_;
  std::size_t size_ = bounds::flight_window_first;
  std::uint64_t sent_ = 0;
  std::uint64_t landed_ = 0;
  std::uint64_t round_end_ = 0;     // what `landed_` must reach; 0: no round
  std::uint64_t round_landed_ = 0;  // `landed_` when it began
  Time round_began_{};
  bool began_idle_ = false;  // nothing else was in flight then
  std::size_t used_ = 0;     // in flight with the last question of the round: the queue that its reply time tells of
  Duration shortest_ = Duration::max();
};

}  // namespace weir::redis
