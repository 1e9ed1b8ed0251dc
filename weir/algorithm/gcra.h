// The generic cell rate algorithm: a bucket is one instant, its TAT, the time when it will be full again.
// In: a limit, the TAT, a cost, now. Out: the decision and the TAT to keep. Pure integer arithmetic without state or
// overflow, because Limit is checked on construction. gcra.lua is the same function for Redis; gcra_vectors.txt
// verifies that both give the same answers.
#pragma once

#include <algorithm>

#include "weir/base/time.h"
#include "weir/core/decision.h"
#include "weir/core/limit.h"

namespace weir {

struct Step {
  Decision decision;
  Time tat;  // state to keep; unchanged when denied

  friend constexpr bool operator==(const Step&, const Step&) = default;
};

namespace gcra {

// Returns the TAT to use in place of `tat`. Pass it to the functions below, and store it if it differs. Under this
// limit no TAT is later than now + window; a later one was written under another limit, or the clock was set back. It
// counts as a bucket that was empty at `since`, the latest instant at which the limit may have changed, so waiting for
// the reported time is enough and the bucket refills without further requests. Any other TAT is returned unchanged:
// capping all of them at since + window would disable the limit one window after any change.
// `now` must be read after `tat` was loaded: an older reading would mistake a newer spend for a change of the limit and
// forgive it.
constexpr Time settle(const Limit& limit, Time tat, Time since, Time now) noexcept {
  return tat - now <= limit.window() ? tat : std::min(since, now) + limit.window();
}

// Returns the time until the bucket is full: at most a whole window, as for an empty bucket.
constexpr Duration backlog(const Limit& limit, Time tat, Time now) noexcept {
  return std::clamp(tat - now, Duration::zero(), limit.window());
}

// Takes `cost` tokens if the bucket has them; a denial takes nothing. A cost of 0 is always allowed.
// REQUIRES: cost >= 0.
constexpr Step spend(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Duration owed = backlog(limit, tat, now);
  const Duration room = limit.window() - owed;
  const Duration price = limit.price(cost);
  if (cost > limit.burst()) return {{false, limit.burst(), room / limit.interval(), kNever, owed}, tat};
  if (price > room) return {{false, limit.burst(), room / limit.interval(), price - room, owed}, tat};
  if (cost == 0) return {{true, limit.burst(), room / limit.interval(), Duration::zero(), owed}, tat};
  return {{true, limit.burst(), (room - price) / limit.interval(), Duration::zero(), owed + price}, now + owed + price};
}

// Returns whether `cost` would be allowed, and takes nothing. `remaining` and `reset_after` are the bucket's current
// ones. REQUIRES: cost >= 0.
constexpr Decision peek(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Decision spent = spend(limit, tat, cost, now).decision;
  const Decision stands = spend(limit, tat, 0, now).decision;
  return {spent.allowed, stands.burst, stands.remaining, spent.retry_after, stands.reset_after};
}

// Returns `cost` tokens to the bucket, but never more than its burst. The TAT moves back by exactly the price, even if
// `now` is slightly older than the reading that wrote it: clamping it to now + window first would return more than the
// price. REQUIRES: cost >= 0.
constexpr Step refund(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Time back = std::max(tat - limit.worth(cost), now);
  const Duration owed = backlog(limit, back, now);
  return {{true, limit.burst(), (limit.window() - owed) / limit.interval(), Duration::zero(), owed}, back};
}

// Takes back a spend made at `spent_at` whose request another limit denied. `now` must be read after `tat` was loaded.
// Tokens that the refill has returned since are not returned twice, so an undo may under-credit by at most its own age
// and never over-credits.
constexpr Time undo(Time tat, Duration price, Time spent_at, Time now) noexcept {
  return tat - std::max(price - std::max(now - spent_at, Duration::zero()), Duration::zero());
}

}  // namespace gcra
}  // namespace weir
