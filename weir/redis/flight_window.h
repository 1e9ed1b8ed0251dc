// Limits how many buckets one event loop may have in flight to one Redis. Keeps Redis's queue so short that replies
// take at most a target time: a flood then queues in this process, where it can be served fairly, not in Redis.
//
// The target is timeout/16, at least twice the shortest reply time seen and at most timeout/4. Once per round (from
// sending commands to their last reply) the window grows if it was used and replies were fast enough, and shrinks in
// proportion if they were not. While a reply is late, the window shrinks with its age, so that a Redis that suddenly
// slows down does not get more than it can answer in time.
//
// Time is an argument; no I/O. Thread safety: none.
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

  // Returns whether `buckets` may be sent now, in addition to `ahead` that are about to be sent. One command may always
  // be in flight, whatever its size.
  bool admits(std::size_t buckets, std::size_t ahead, Time now) const noexcept {
    const std::size_t before = in_flight() + ahead;
    return before == 0 || before + buckets <= size(now);
  }

  void sent(std::size_t buckets, Time now) noexcept {
    if (buckets == 0) return;
    sent_ += buckets;
    // Everything sent before the first reply belongs to the round: the first reply of many alone would come too soon to
    // measure the queue.
    if (round_end_ != 0 && answered_ != round_answered_) return;
    if (round_end_ == 0) {
      round_began_ = now;
      round_answered_ = answered_;
      began_idle_ = in_flight() == buckets;
    }
    round_end_ = sent_;
    used_ = in_flight();
  }

  // Redis answered this many buckets.
  void answered(std::size_t buckets, Time now) noexcept {
    // In a round that started with nothing in flight, the first reply did not wait behind another.
    if (round_end_ != 0 && answered_ == round_answered_ && began_idle_) {
      shortest_ = std::min(shortest_, std::max(now - round_began_, Duration{1}));
    }
    answered_ += buckets;
    if (round_end_ == 0 || answered_ < round_end_) return;
    end_round(std::max(now - round_began_, Duration{1}));
  }

  // This many buckets were lost with the connection. Says nothing about Redis's speed.
  void lost(std::size_t buckets) noexcept {
    answered_ += buckets;
    round_end_ = 0;
  }

  std::size_t in_flight() const noexcept { return static_cast<std::size_t>(sent_ - answered_); }

  std::size_t size(Time now) const noexcept { return round_end_ == 0 ? size_ : shrunk(now - round_began_); }

  Duration target() const noexcept {
    const Duration at_least = shortest_ == Duration::max() ? Duration::zero() : 2 * shortest_;
    return std::min(std::max(timeout_ / 16, at_least), timeout_ / 4);
  }

 private:
  // Returns the size reduced in proportion to how far the reply time exceeds the target.
  std::size_t shrunk(Duration reply) const noexcept {
    if (reply <= target()) return size_;
    const auto share = static_cast<std::int64_t>(size_) * target().count() / reply.count();
    return std::max(static_cast<std::size_t>(share), bounds::flight_window_min);
  }

  void end_round(Duration reply) noexcept {
    if (reply > target()) {
      size_ = shrunk(reply);
    } else if (used_ >= size_ / 2) {
      size_ = std::min(reply <= target() / 2 ? size_ * 2 : size_ + kGrowth, bounds::flight_window_max);
    }
    round_end_ = 0;
  }

  static constexpr std::size_t kGrowth = 16;

  Duration timeout_;
  std::size_t size_ = bounds::flight_window_first;
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t round_end_ = 0;       // the round ends when `answered_` reaches this; 0: no round
  std::uint64_t round_answered_ = 0;  // `answered_` when it began
  Time round_began_{};
  bool began_idle_ = false;  // nothing else was in flight when it began
  std::size_t used_ = 0;     // in flight when the round's last command was sent
  Duration shortest_ = Duration::max();
};

}  // namespace weir::redis
