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
  Time tat;  // state to keep; unchanged when denied

  friend constexpr bool operator==(const Step&, const Step&) = default;
};

namespace gcra {

// What a TAT counts as, to be passed to the functions below and written if it differs. Under these numbers no TAT lies
// further ahead than now + window: one that does was written under other numbers, or the clock was set back. It counts
// as a bucket that was empty at `since`, the latest instant the numbers may have changed, so that waiting the answered
// time is enough and time passes for a silent client too. Every other TAT counts as it is: capping all of them at
// since + window would switch the limit off one window after any change.
// `now` is read after `tat` was loaded: an older reading would take a newer spend for a change and forgive it.
constexpr Time settle(const Limit& limit, Time tat, Time since, Time now) noexcept {
  return tat - now <= limit.window() ? tat : std::min(since, now) + limit.window();
}

// Time already promised. At worst the bucket is empty under its present numbers.
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

// Returns whether `cost` would pass. Takes nothing: remaining and reset_after are the bucket's own. REQUIRES: cost >=
// 0.
constexpr Decision peek(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Decision spent = spend(limit, tat, cost, now).decision;
  const Decision stands = spend(limit, tat, 0, now).decision;
  return {spent.allowed, stands.burst, stands.remaining, spent.retry_after, stands.reset_after};
}

// Gives `cost` back, never beyond full. The state goes back by exactly the price, even if `now` is a little older than
// the reading that wrote it: cutting it to now + window first would give back more than the price. REQUIRES: cost >= 0.
constexpr Step refund(const Limit& limit, Time tat, Count cost, Time now) noexcept {
  const Time back = std::max(tat - limit.worth(cost), now);
  const Duration owed = backlog(limit, back, now);
  return {{true, limit.burst(), (limit.window() - owed) / limit.interval(), Duration::zero(), owed}, back};
}

// Takes back a spend made at `spent_at` whose request was denied elsewhere. `now` is read after `tat` was loaded: what
// the refill has given back since is not given twice, so an undo may under-credit by its own age and never
// over-credits.
constexpr Time undo(Time tat, Duration price, Time spent_at, Time now) noexcept {
  return tat - std::max(price - std::max(now - spent_at, Duration::zero()), Duration::zero());
}

}  // namespace gcra
}  // namespace weir
