#include "weir/simulate/replay.h"

#include <algorithm>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/charging.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/assert.h"
#include "weir/policy/explain.h"

namespace weir::simulate {

class Replay::Buckets {
 public:
  Buckets(States& states, Now now) noexcept : states_(states), now_(now) {}

  std::uint64_t hash(Key key) const noexcept {
    return Hash{}(key.text) ^ (key.kind == Kind::quota ? 0x9e37'79b9'7f4a'7c15 : 0);
  }

  Decision spend(const ChargedBucket& bucket) noexcept {
    State state = load(bucket);
    if (bucket.is_quota()) {
      // A denial is kept too: it takes nothing, but a quota follows a clock that was set back.
      const QuotaStep step = quota::spend(bucket.quota(), state.quota, bucket.cost, now_.wall);
      state.quota = step.state;
      store(bucket, state);
      return step.decision;
    }
    const Step step = gcra::spend(bucket.rate().limit, state.tat, bucket.cost, now_.time);
    if (step.decision.allowed && bucket.cost > 0) store(bucket, {step.tat, now_.time, state.quota});
    return step.decision;
  }

  Decision peek(const ChargedBucket& bucket) noexcept {
    const State state = load(bucket);
    const Count cost = forgets_ ? 0 : bucket.cost;
    if (bucket.is_quota()) return quota::peek(bucket.quota(), state.quota, cost, now_.wall);
    return gcra::peek(bucket.rate().limit, state.tat, cost, now_.time);
  }

  Decision look(const ChargedBucket& bucket) noexcept { return peek(bucket); }

  // A bucket without a state is full: there is nothing to keep.
  Decision refund(const ChargedBucket& bucket) noexcept {
    State state = load(bucket);
    const bool known = states_.find(bucket.key().text) != states_.end();
    if (bucket.is_quota()) {
      const QuotaStep step = quota::refund(bucket.quota(), state.quota, bucket.cost, now_.wall);
      state.quota = step.state;
      if (known) store(bucket, state);
      return step.decision;
    }
    const Step step = gcra::refund(bucket.rate().limit, state.tat, bucket.cost, now_.time);
    const bool full = state.tat <= now_.time;
    if (known && !full) store(bucket, {step.tat, std::max(state.written, now_.time), state.quota});
    return step.decision;
  }

  bool reset(const ChargedBucket& bucket) noexcept {
    forgets_ = true;
    const auto found = states_.find(bucket.key().text);
    if (found == states_.end()) return false;
    State& state = found->second;
    state = bucket.is_quota() ? State{state.tat, state.written, 0} : State{{}, {}, state.quota};
    if (state == State{}) states_.erase(found);
    return true;
  }

  // A replay is alone with its buckets: it never loses a race.
  void undo(const ChargedBucket&, const Decision&) noexcept { WEIR_ASSERT(false); }

 private:
  // Settled: every answer about a bucket whose numbers changed is kept, also one that takes nothing. A line out of
  // order by less than a window is waited for, like any reading that is a little old: settling would give away what was
  // spent in between. Beyond that the clock was set back.
  State load(const ChargedBucket& bucket) noexcept {
    const auto found = states_.find(bucket.key().text);
    if (found == states_.end()) return {};
    State& state = found->second;
    if (bucket.is_quota()) return state;
    const Limit& limit = bucket.rate().limit;
    const bool early = now_.time < state.written && state.written - now_.time <= limit.window();
    if (early) return state;
    const Time settled = gcra::settle(limit, state.tat, bucket.rate().since, now_.time);
    if (settled != state.tat) state = {settled, now_.time, state.quota};
    return state;
  }

  void store(const ChargedBucket& bucket, const State& state) {
    const std::string_view key = bucket.key().text;
    if (const auto found = states_.find(key); found != states_.end()) {
      found->second = state;
    } else if (state != State{}) {
      states_.emplace(key, state);
    }
  }

  States& states_;
  const Now now_;
  bool forgets_ = false;
};

Result<Answer> Replay::ask(const Query& query, Now now) {
  if (now.time < last_) since_ = now.time;
  last_ = now.time;
  if (auto resolved = policy_->resolve(query, nothing_known_, now, resolved_, since_); !resolved) {
    return resolved.error();
  }
  // Nothing is taken on the way to a cost that can never pass.
  const Mode mode = resolved_.impossible() ? Mode::peek : query.mode;
  const bool peeks = mode == Mode::peek || mode == Mode::look;
  Buckets buckets(states_, now);
  weir::Answer answer;
  answer.now = now;
  answer.verdict = peeks && resolved_.order() == Order::in_order
                       ? peek_in_order(buckets, resolved_.charges())
                       : charge(buckets, resolved_.charges(), mode, resolved_.order());
  explain(*policy_, resolved_, query.mode, answer);
  return speak(answer);
}

// As a spend would: what is behind the first denial is not asked.
Verdict Replay::peek_in_order(Buckets& buckets, std::span<const Charge> charges) noexcept {
  Decisions decisions;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Verdict one = charge(buckets, charges.subspan(i, 1), Mode::peek, Order::in_order);
    decisions.push_back(one.all[0]);
    if (!one.allowed) break;
  }
  return conclude(decisions, [&](std::size_t i) { return charges[i].say(); });
}

Answer Replay::speak(const weir::Answer& answer) const noexcept {
  const Verdict& verdict = answer.verdict;
  if (verdict.all.empty()) {
    const Part& part = resolved_.parts().front();
    return {part.limit->name, part.id, {}, false};
  }
  const Label& label = answer.labels[verdict.strictest];
  Decision decision = verdict.speaker();
  if (decision.burst == kUnbounded) return {label.limit, label.id, {}, false};
  decision.allowed = verdict.allowed;
  // A list or a block denies, not a bucket: it is over when the wait is.
  if (!decision.allowed && decision.burst == 0) decision.reset_after = decision.retry_after;
  return {label.limit, label.id, decision, true};
}

}  // namespace weir::simulate
