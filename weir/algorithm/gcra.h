// The generic cell rate algorithm: a bucket is one instant, its TAT, the time when it will be full again.
// In: a limit, the TAT, a cost, now. Out: the decision and the TAT to keep. Pure integers, no state, no overflow: Limit
// was checked when it was made. gcra.lua is the same function for Redis; gcra_vectors.txt holds both to the same
// answers.
#pragma once

#include <algorithm>

#include "weir/base/time.h"
#include "weir/core/decision.h"
#include "weir/core/limit.h"

namespace weir {

struct Step {
  Decision decision;
  Time tat;  // state to keep; unchanged when denied (but see settle)

  friend constexpr bool operator==(const Step&, const Step&) = default;
};

namespace gcra {

// Time already promised. At worst the bucket is empty under its present numbers, so a shrunk limit or a clock set back
// costs at most one window.
constexpr Duration backlog(const Limit& limit, Time tat, Time now) noexcept {
  return std::clamp(tat - now, Duration::zero(), limit.window());
}

// REQUIRES: cost >= 0. A cost of 0 takes nothing and always passes.
constexpr Step spend(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Duration owed = backlog(limit, tat, now);
  const Duration room = limit.window() - owed;
  const Duration price = limit.price(cost);
  if (cost > limit.burst()) return {{false, limit.burst(), room / limit.interval(), kNever, owed}, tat};
  if (price > room) return {{false, limit.burst(), room / limit.interval(), price - room, owed}, tat};
  if (cost == 0) return {{true, limit.burst(), room / limit.interval(), Duration::zero(), owed}, tat};
  return {{true, limit.burst(), (room - price) / limit.interval(), Duration::zero(), owed + price}, now + owed + price};
}

// Would `cost` pass? Remaining and reset_after are the bucket's as it stands: nothing is taken. REQUIRES: cost >= 0.
constexpr Decision peek(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Decision spent = spend(limit, tat, cost, now).decision;
  const Decision stands = spend(limit, tat, 0, now).decision;
  return {spent.allowed, stands.burst, stands.remaining, spent.retry_after, stands.reset_after};
}

// Gives `cost` back, never beyond full. The state goes back by exactly the price, even where it lies further ahead than
// a window: cutting it to the window first would give a reading that is a little old more than the price.
// REQUIRES: cost >= 0.
constexpr Step refund(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Time back = std::max(tat - limit.worth(cost), now);
  const Duration owed = backlog(limit, back, now);
  return {{true, limit.burst(), (limit.window() - owed) / limit.interval(), Duration::zero(), owed}, back};
}

// What a denied bucket's TAT becomes when its numbers shrank or the timeline was set back, so that it lies further
// ahead than an empty bucket's: now + window, empty under the present numbers. The denial said so; without keeping it
// the wait would begin anew with every request. Any other TAT stays. `now` is read after `tat` was loaded: a reading
// older than the one that made the TAT would take the difference for a shrunk limit and give it away.
constexpr Time settle(const Limit& limit, Time tat, Time now) noexcept {
  return std::min(tat, now + limit.window());
}

// Takes back a spend made at `spent_at` whose request was denied elsewhere. `now` is read after `tat` was loaded: what
// the refill has given back since is not given twice, so an undo may under-credit by its own age and never
// over-credits.
constexpr Time undo(Time tat, Duration price, Time spent_at, Time now) noexcept {
  return tat - std::max(price - std::max(now - spent_at, Duration::zero()), Duration::zero());
}

}  // namespace gcra
}  // namespace weir
