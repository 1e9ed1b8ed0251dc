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
    const Decision decision = simulate::spend(state, bucket, now_);
    store(bucket, state);
    return decision;
  }

  Decision peek(const ChargedBucket& bucket) noexcept {
    return simulate::peek(load(bucket), bucket, forgets_ ? 0 : bucket.cost, now_);
  }

  Decision look(const ChargedBucket& bucket) noexcept { return peek(bucket); }

  // A bucket without a state is full, so there is nothing to store.
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

  // A replay has no concurrent writers, so it never loses a race.
  void undo(const ChargedBucket&, const Decision&) noexcept { WEIR_ASSERT(false); }

 private:
  State load(const ChargedBucket& bucket) noexcept {
    const auto found = states_.find(bucket.key().text);
    if (found == states_.end()) return {};
    settle(found->second, bucket, now_);
    return found->second;
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
  // If a cost can never pass, only peek: nothing else is charged.
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
  // Denied by a list or a block, not by a bucket: it ends when the wait ends.
  if (!decision.allowed && decision.burst == 0) decision.reset_after = decision.retry_after;
  return {label.limit, label.id, decision, true};
}

}  // namespace weir::simulate
