#include "weir/redis/availability.h"

#include <algorithm>

namespace weir::redis {

bool Availability::connected() noexcept {
  if (state_ != State::starting) return false;
  state_ = State::up;
  return true;
}

bool Availability::failed(Time now) noexcept {
  good_probes_ = 0;
  odd_since_ = kNever;
  if (state_ != State::up) return false;
  state_ = State::down;
  probed_at_ = kNever;
  const bool again = recovered_at_ != kNever && now - recovered_at_ < kAgainWithin;
  recovery_ = again ? std::min(recovery_ * 2, kRecoveryMax) : kRecoveryMin;
  return true;
}

bool Availability::odd(Time now) noexcept {
  if (state_ != State::up) return false;
  if (odd_since_ == kNever) odd_since_ = now;
  return now - odd_since_ >= kOddMax && failed(now);
}

Time Availability::probe_at() const noexcept {
  if (state_ == State::down) return probed_at_ == kNever ? Time{} : probed_at_ + kProbeEvery;
  if (state_ != State::up || odd_since_ == kNever) return kNever;
  const Time last = probed_at_ == kNever ? odd_since_ : std::max(odd_since_, probed_at_);
  return last + kOddProbeEvery;
}

bool Availability::probe_answered(Time now) noexcept {
  decided();
  if (state_ != State::down) return false;
  if (now - probed_at_ > probe_timeout()) {
    probe_failed();
    return false;
  }
  if (good_probes_++ == 0) good_since_ = probed_at_;
  if (good_probes_ < kProbesInARow || now - good_since_ < recovery_) return false;
  state_ = State::up;
  recovered_at_ = now;
  return true;
}

}  // namespace weir::redis
