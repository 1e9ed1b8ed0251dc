// Decides whether one Redis counts as up, from what happens on its connections. No I/O; the time is an argument.
//
//   down  no reply for one timeout while something is in flight, no connection, or no decision for kOddMax although
//         other replies arrived
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
  // True until the first connection: neither up nor down.
  bool is_starting() const noexcept { return state_ == State::starting; }
  // A probe must be answered within this time.
  Duration probe_timeout() const noexcept { return timeout_ / 2; }

  // A connection is ready. Returns true if Redis is up now, because it is the first connection.
  bool connected() noexcept;
  // No reply arrived for one timeout while something was in flight, or no connection is left. Returns true if Redis was
  // up until now.
  bool failed(Time now) noexcept;

  // A decision arrived.
  void decided() noexcept { odd_since_ = kNever; }
  // A reply arrived that is not a decision. Returns true if this takes Redis down.
  bool odd(Time now) noexcept;

  // Returns when to send the next probe, if a connection is ready; Time::max() if none is needed.
  Time probe_at() const noexcept;
  void probe_sent(Time now) noexcept { probed_at_ = now; }
  // A decision answered the probe. Returns true if Redis is up again.
  bool probe_answered(Time now) noexcept;
  // Another reply answered the probe, or none within probe_timeout().
  void probe_failed() noexcept { good_probes_ = 0; }

 private:
  enum class State : unsigned char { starting, up, down };
  static constexpr Time kNever = Time::max();

  const Duration timeout_;
  State state_ = State::starting;
  Duration recovery_ = kRecoveryMin;  // how long probes must succeed before the next recovery
  Time recovered_at_ = kNever;
  Time odd_since_ = kNever;  // the first reply since the last decision that is not one
  Time probed_at_ = kNever;
  int good_probes_ = 0;
  Time good_since_{};  // when the first of them was sent
};

}  // namespace weir::redis
