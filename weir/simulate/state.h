// The state under one key, and what a charge at one instant does to it. Pure: both replays, of traces and of logs, keep
// their states in their own way and decide with these.
#pragma once

#include <cstdint>
#include <span>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/charging.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/time.h"
#include "weir/core/decision.h"

namespace weir::simulate {

// Of a rate, of a quota, or of both. The default is a full bucket.
struct State {
  Time tat{};
  Time written{};           // the TAT is at most a window after this reading
  std::uint64_t quota = 0;  // algorithm/calendar.h

  friend bool operator==(const State&, const State&) = default;
};

// Every answer about a bucket whose numbers changed is kept, also one that takes nothing. A line out of order by less
// than a window is waited for, like any reading that is a little old: settling would give away what was spent in
// between. Beyond that the clock was set back.
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
    // A denial is kept too: it takes nothing, but a quota follows a clock that was set back.
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

// As a spend in order would: what is behind the first denial is not asked.
template <class Buckets>
Verdict peek_in_order(Buckets& buckets, std::span<const Charge> charges) noexcept {
  Decisions decisions;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Verdict one = charge(buckets, charges.subspan(i, 1), Mode::peek, Order::in_order);
    decisions.push_back(one.all[0]);
    if (!one.allowed) break;
  }
  return conclude(decisions, [&](std::size_t i) { return charges[i].say(); });
}

}  // namespace weir::simulate
