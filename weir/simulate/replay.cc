#include "weir/simulate/replay.h"

#include <algorithm>
#include <optional>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/gcra.h"

namespace weir::simulate {
namespace {

// The charges of one limit for one id stand side by side under one text: its numbers, its quota, or both. They are
// charged together even where limits are charged in order.
std::span<const Charge> first_group(std::span<const Charge> charges) noexcept {
  std::size_t size = 1;
  while (size < charges.size() && charges[size].key.text == charges[0].key.text) ++size;
  return charges.first(size);
}

}  // namespace

Result<Answer> Replay::ask(const Query& query, Now now) {
  decisions_ = {};
  if (now.time < last_) since_ = now.time;
  last_ = now.time;
  if (auto resolved = policy_->resolve(query, nothing_known_, now, resolved_, since_); !resolved) {
    return resolved.error();
  }
  const std::span<const Charge> charges = resolved_.charges();
  bool allowed = true;
  switch (query.mode) {
    case Mode::spend:
      if (resolved_.impossible()) {
        allowed = peek(charges, query.order, now);  // nothing is taken on the way to a cost that can never pass
        break;
      }
      allowed = query.order == Order::together ? spend_together(charges, now) : spend_in_order(charges, now);
      break;
    case Mode::peek:
    case Mode::look:
      allowed = peek(charges, query.order, now);
      break;
    case Mode::refund:
      refund(charges, now);
      break;
    case Mode::reset:
      reset(charges, now);
      break;
  }
  if (const Part* const denied = resolved_.denied(); denied != nullptr) {
    const std::optional<Wall> until = resolved_.denied_until();
    return refused(*denied, until ? *until - now.wall : kNever);
  }
  // Charged in order, a denial before the blocked limit has already answered.
  if (allowed && resolved_.blocked() != nullptr) return refused(*resolved_.blocked(), kNever);
  return speak(allowed);
}

bool Replay::spend_together(std::span<const Charge> charges, Now now) {
  const std::size_t first = decisions_.size();
  bool allowed = true;
  for (const Charge& charge : charges) {
    const Decision decision = look(charge, load(charge, now), now);
    decisions_.push_back(decision);
    if (!charge.shadow && !decision.allowed) allowed = false;
  }
  for (std::size_t i = 0; i < charges.size();) {
    const std::span<const Charge> group = first_group(charges.subspan(i));
    const Decision* const looked = decisions_.begin() + first + i;
    const bool passes = std::all_of(looked, looked + group.size(), [](const Decision& d) { return d.allowed; });
    for (const Charge& charge : group) {
      Decision& decision = decisions_[first + i++];
      // A shadow limit lives its own life: it is charged whenever it alone would have let the request pass. A denial is
      // kept too: it changes no bucket, but a quota follows a clock that was set back.
      const bool charged = charge.shadow ? passes : allowed;
      if (!charged && decision.allowed) continue;
      const Taken taken = take(charge, load(charge, now), now);
      decision = taken.decision;
      store(charge, taken.bucket);
    }
  }
  return allowed;
}

bool Replay::spend_in_order(std::span<const Charge> charges, Now now) {
  while (!charges.empty()) {
    const std::span<const Charge> group = first_group(charges);
    if (!spend_together(group, now)) return false;
    charges = charges.subspan(group.size());
  }
  return true;
}

bool Replay::peek(std::span<const Charge> charges, Order order, Now now) {
  bool allowed = true;
  while (!charges.empty() && (allowed || order == Order::together)) {
    const std::span<const Charge> group = first_group(charges);
    for (const Charge& charge : group) {
      const Decision decision = look(charge, load(charge, now), now);
      decisions_.push_back(decision);
      if (!charge.shadow && !decision.allowed) allowed = false;
    }
    charges = charges.subspan(group.size());
  }
  return allowed;
}

void Replay::refund(std::span<const Charge> charges, Now now) {
  for (const Charge& charge : charges) {
    const Taken given = give(charge, load(charge, now), now);
    decisions_.push_back(given.decision);
    // Nobody owes this bucket anything, so there is nothing to keep.
    if (buckets_.find(charge.key.text) != buckets_.end()) store(charge, given.bucket);
  }
}

void Replay::reset(std::span<const Charge> charges, Now now) {
  for (const Charge& charge : charges) {
    if (const auto found = buckets_.find(charge.key.text); found != buckets_.end()) buckets_.erase(found);
    Charge nothing = charge;
    nothing.cost = 0;
    decisions_.push_back(look(nothing, Bucket{}, now));
  }
}

Decision Replay::look(const Charge& charge, const Bucket& bucket, Now now) noexcept {
  if (charge.key.kind == Kind::quota) return quota::peek(charge.quota, bucket.quota, charge.cost, now.wall);
  return gcra::peek(charge.limit, bucket.tat, charge.cost, now.time);
}

Replay::Taken Replay::take(const Charge& charge, const Bucket& bucket, Now now) noexcept {
  if (charge.key.kind == Kind::quota) {
    const QuotaStep step = quota::spend(charge.quota, bucket.quota, charge.cost, now.wall);
    return {step.decision, {bucket.tat, bucket.written, step.state}};
  }
  const Step step = gcra::spend(charge.limit, bucket.tat, charge.cost, now.time);
  if (!step.decision.allowed || charge.cost == 0) return {step.decision, bucket};  // nothing is taken
  return {step.decision, {step.tat, now.time, bucket.quota}};
}

Replay::Taken Replay::give(const Charge& charge, const Bucket& bucket, Now now) noexcept {
  if (charge.key.kind == Kind::quota) {
    const QuotaStep step = quota::refund(charge.quota, bucket.quota, charge.cost, now.wall);
    return {step.decision, {bucket.tat, bucket.written, step.state}};
  }
  const Step step = gcra::refund(charge.limit, bucket.tat, charge.cost, now.time);
  if (bucket.tat <= now.time) return {step.decision, bucket};  // full: it stays as it is
  return {step.decision, {step.tat, std::max(bucket.written, now.time), bucket.quota}};
}

// Settled: every answer about a bucket whose numbers changed is kept, also one that takes nothing. A line out of order
// by less than a window is waited for, like any reading that is a little old: settling would give away what was spent
// in between. Beyond that the clock was set back.
Replay::Bucket Replay::load(const Charge& charge, Now now) noexcept {
  const auto found = buckets_.find(charge.key.text);
  if (found == buckets_.end()) return {};
  Bucket& bucket = found->second;
  const bool early = now.time < bucket.written && bucket.written - now.time <= charge.limit.window();
  if (charge.key.kind == Kind::quota || early) return bucket;
  const Time settled = gcra::settle(charge.limit, bucket.tat, charge.since, now.time);
  if (settled != bucket.tat) bucket = {settled, now.time, bucket.quota};
  return bucket;
}

void Replay::store(const Charge& charge, const Bucket& bucket) {
  if (const auto found = buckets_.find(charge.key.text); found != buckets_.end()) {
    found->second = bucket;
  } else if (bucket != Bucket{}) {
    buckets_.emplace(charge.key.text, bucket);
  }
}

Answer Replay::refused(const Part& part, Duration wait) noexcept {
  return {part.limit->name, part.id, {false, 0, 0, wait, wait}, true};
}

Answer Replay::speak(bool allowed) const noexcept {
  std::optional<std::size_t> speaker;
  const std::span<const Charge> charges = resolved_.charges();
  for (std::size_t i = 0; i < decisions_.size(); ++i) {
    const bool better =
        !speaker || (charges[*speaker].shadow && !charges[i].shadow) ||
        (charges[*speaker].shadow == charges[i].shadow && stricter(decisions_[i], decisions_[*speaker]));
    if (better) speaker = i;
  }
  if (!speaker) {
    // Giving back to a blocked id is no question that its block denies; it stays blocked all the same.
    for (const Part& part : resolved_.parts()) {
      if (part.standing == Standing::blocked && part.mode == Enforcement::enforce) return refused(part, kNever);
    }
    for (const Part& part : resolved_.parts()) {
      if (part.standing != Standing::blocked) continue;
      return {part.limit->name, part.id, Decision{true, 0, 0, kNever, Duration::zero()}, true};  // by a shadow limit
    }
    const Part& part = resolved_.parts().front();
    return {part.limit->name, part.id, {}, false};
  }
  for (const Part& part : resolved_.parts()) {
    if (part.bucket != *speaker && part.quota != *speaker) continue;
    Decision decision = decisions_[*speaker];
    decision.allowed = allowed;
    return {part.limit->name, part.id, decision, true};
  }
  WEIR_ASSERT(false);  // every charge belongs to a part
}

}  // namespace weir::simulate
