// The state under one key, and what a charge at one instant does to it. Pure functions: the replays of traces and of
// logs store their states differently and both decide with these.
#pragma once

#include <cstdint>
#include <span>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/charging.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/time.h"
#include "weir/core/decision.h"

namespace weir::simulate {

// The state of a rate, a quota, or both. The default is a full bucket.
struct State {
  Time tat{};
  Time written{};           // the TAT is at most a window after this time
  std::uint64_t quota = 0;  // algorithm/calendar.h

  friend bool operator==(const State&, const State&) = default;
};

// Applies changed numbers to the state, even if the charge takes nothing. A time that is up to one window before the
// last write belongs to a line out of order, and does not settle: settling would give back what was spent in between.
// An earlier time means that the clock was set back.
inline void settle(State& state, const ChargedBucket& bucket, Now now) noexcept {
  if (bucket.is_quota()) return;
  const Limit& limit = bucket.rate().limit;
  if (now.time < state.written && state.written - now.time <= limit.window()) return;
  const Time settled = gcra::settle(limit, state.tat, bucket.rate().since, now.time);
  if (settled != state.tat) state = {settled, now.time, state.quota};
}

// REQUIRES: the state is settled, here and below.
inline Decision spend(State& state, const ChargedBucket& bucket, Now now) noexcept {
  if (bucket.is_quota()) {
    // A denial is stored too: it takes nothing, but the quota's window follows a clock that was set back.
    const QuotaStep step = quota::spend(bucket.quota(), state.quota, bucket.cost, now.wall);
    state.quota = step.state;
    return step.decision;
  }
  const Step step = gcra::spend(bucket.rate().limit, state.tat, bucket.cost, now.time);
  if (step.decision.allowed && bucket.cost > 0) state = {step.tat, now.time, state.quota};
  return step.decision;
}

inline Decision peek(const State& state, const ChargedBucket& bucket, Count cost, Now now) noexcept {
  if (bucket.is_quota()) return quota::peek(bucket.quota(), state.quota, cost, now.wall);
  return gcra::peek(bucket.rate().limit, state.tat, cost, now.time);
}

// Like a spend in order: nothing after the first denial is asked.
template <class Buckets>
Verdict peek_in_order(Buckets& buckets, std::span<const Charge> charges) noexcept {
  Decisions decisions;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Verdict one = charge(buckets, charges.subspan(i, 1), Mode::peek, Order::in_order);
    decisions.push_back(one.all[0]);
    if (!one.allowed) break;
  }
  return conclude(decisions, [&](std::size_t i) { return charges[i].role(); });
}

}  // namespace weir::simulate
