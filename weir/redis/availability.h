// Decides whether one Redis counts as up, from what happens on its connections. No I/O; the time is an argument.
//
//   down  no reply for one timeout while something is in flight, no connection, or for kOddMax no decision although
//         replies that are none arrived
//   up    the first time, as soon as a connection is ready; later after kProbesInARow probes in a row, each answered
//         within half a timeout, over at least a second. That span doubles, up to 16 s, if Redis fails again within a
//         minute.
//
// While it is down the caller sends only probes. It also probes while replies arrive that are not decisions: a decision
// on the probe shows that one odd limit is the problem, not Redis.
//
// Thread safety: none.
#pragma once

#include <chrono>

#include "weir/base/time.h"

namespace weir::redis {

inline constexpr int kProbesInARow = 3;
inline constexpr Duration kRecoveryMin = std::chrono::seconds{1};
inline constexpr Duration kRecoveryMax = std::chrono::seconds{16};
inline constexpr Duration kAgainWithin = std::chrono::minutes{1};
inline constexpr Duration kOddMax = std::chrono::seconds{1};
inline constexpr Duration kProbeEvery = std::chrono::milliseconds{500};
inline constexpr Duration kOddProbeEvery = std::chrono::milliseconds{300};

class Availability {
 public:
  explicit Availability(Duration timeout) : timeout_(timeout) {}

  bool is_up() const noexcept { return state_ == State::up; }
  // Neither up nor down yet: there was no connection so far.
  bool is_starting() const noexcept { return state_ == State::starting; }
  // Within which a probe must be answered.
  Duration probe_timeout() const noexcept { return timeout_ / 2; }

  // A connection is ready. True: Redis is up with it, because it is the first.
  bool connected() noexcept;
  // No reply for one timeout while something was in flight, or no connection is left. True: Redis was up until now.
  bool failed(Time now) noexcept;

  // A decision arrived.
  void decided() noexcept { odd_since_ = kNever; }
  // A reply arrived that is not a decision. True: Redis was up until now.
  bool odd(Time now) noexcept;

  // When to send the next probe, if a connection is ready; Time::max(): none is needed.
  Time probe_at() const noexcept;
  void probe_sent(Time now) noexcept { probed_at_ = now; }
  // The probe got a decision. True: Redis is up again.
  bool probe_answered(Time now) noexcept;
  // It got something else, or nothing within probe_timeout().
  void probe_failed() noexcept { good_probes_ = 0; }

 private:
  enum class State : unsigned char { starting, up, down };
  static constexpr Time kNever = Time::max();

  const Duration timeout_;
  State state_ = State::starting;
  Duration recovery_ = kRecoveryMin;  // the span of good probes that the next recovery takes
  Time recovered_at_ = kNever;
  Time odd_since_ = kNever;  // the first reply since the last decision that is none
  Time probed_at_ = kNever;
  int good_probes_ = 0;
  Time good_since_{};  // when the first of them was sent
};

}  // namespace weir::redis
