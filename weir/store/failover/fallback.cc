#include "weir/store/failover/fallback.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/assert.h"
#include "weir/store/conclude.h"
#include "weir/store/memory/charging.h"

namespace weir {
namespace {

bool enforces_refusal(const Charge& charge) {
  return !charge.shadow && charge.on_failure == FailurePolicy::fail_closed;
}

// A bucket that nobody knows anything about is a full one.
Decision decide_full(const Charge& charge, Mode mode, Now now) {
  const Count cost = mode == Mode::refund ? 0 : charge.cost;
  const bool looks = mode == Mode::peek || mode == Mode::look;
  if (charge.key.kind == Kind::quota) {
    return looks ? quota::peek(charge.quota, 0, cost, now.wall)
                 : quota::spend(charge.quota, 0, cost, now.wall).decision;
  }
  return looks ? gcra::peek(charge.limit, now.time, cost, now.time)
               : gcra::spend(charge.limit, now.time, cost, now.time).decision;
}

Error refusal(const Charge& charge) {
  std::string who = charge.limit_name.empty() ? "" : " for limit \"" + std::string(charge.limit_name) + "\"";
  return Error{Fault::unavailable, "the store cannot be asked now, and failure_policy" + who + " is failClosed",
               charge.failure_code};
}

// A cost that fits the whole limit but not this server's share of it may pass again when the store answers.
Decision not_for_ever(Decision decision, const Charge& charge) {
  const bool quota = charge.key.kind == Kind::quota;
  if (decision.retry_after != kNever || charge.cost > (quota ? charge.quota.size : charge.limit.burst())) {
    return decision;
  }
  decision.retry_after = quota ? charge.quota.window.end - charge.quota.window.start : charge.limit.window();
  return decision;
}

}  // namespace

Limit divide(const Limit& limit, Count share) {
  WEIR_ASSERT(share >= 1 && share <= bounds::share_max);
  // An interval this long belongs to a bucket of fewer tokens than there are servers: its share is one token.
  const bool longest = limit.interval() > bounds::window_max / share;
  const Duration interval = longest ? bounds::window_max : limit.interval() * share;
  return *Limit::make(1, interval, std::max<Count>(limit.burst() / share, 1));
}

Fallback::Fallback(Table& table, Count share, FallbackCounts& counts, const Clock& clock) noexcept
    : table_(table), share_(share), counts_(counts), clock_(clock) {
  WEIR_ASSERT(share >= 1 && share <= bounds::share_max);
}

Charge Fallback::shared(const Charge& charge) const {
  Charge divided = charge;
  divided.limit = divide(charge.limit, share_);
  divided.quota.size = std::max<Count>(charge.quota.size / share_, 1);
  return divided;
}

Result<Verdict> Fallback::decide(const Question& question, Now now) {
  if (question.mode == Mode::reset) {
    (void)weir::charge(table_, question.charges, Mode::reset, question.order, now, clock_);
    const int code = question.charges.empty() ? 0 : question.charges.front().failure_code;
    return Error{Fault::unavailable, "the store cannot be asked now: nothing was reset in it", code};
  }
  const auto closed = std::ranges::find_if(question.charges, enforces_refusal);
  if (closed != question.charges.end()) {
    counts_.add(FailurePolicy::fail_closed);
    return refusal(*closed);
  }
  return decide_open(question, now);
}

Verdict Fallback::decide_open(const Question& question, Now now) {
  const std::span<const Charge> charges = question.charges;
  const bool in_order = question.order == Order::in_order && question.mode == Mode::spend;
  std::array<Decision, bounds::charges_max> found{};
  std::array<Charge, bounds::charges_max> local{};
  std::array<std::size_t, bounds::charges_max> place{};  // of a local charge among all
  std::size_t locals = 0;
  std::size_t end = charges.size();  // in order: how many were asked
  bool refused = false;
  bool passed = charges.empty();
  for (std::size_t i = 0; i < charges.size() && end == charges.size(); ++i) {
    if (charges[i].on_failure == FailurePolicy::in_memory_fallback) {
      local[locals] = shared(charges[i]);
      place[locals++] = i;
      continue;
    }
    passed = true;
    found[i] = decide_full(charges[i], question.mode, now);
    if (found[i].allowed || charges[i].shadow) continue;
    refused = true;
    if (in_order) end = i + 1;
  }
  if (locals > 0) {
    // All or none: what is refused anyway takes nothing.
    const bool look = refused && question.order == Order::together && question.mode == Mode::spend;
    const Verdict verdict =
        weir::charge(table_, {local.data(), locals}, look ? Mode::peek : question.mode, question.order, now, clock_);
    for (std::size_t n = 0; n < verdict.all.size(); ++n) {
      found[place[n]] = not_for_ever(verdict.all[n], charges[place[n]]);
    }
    if (in_order && !verdict.allowed) end = std::min(end, place[verdict.all.size() - 1] + 1);
    counts_.add(FailurePolicy::in_memory_fallback);
  }
  if (passed) counts_.add(FailurePolicy::pass_through);
  Decisions decisions;
  for (std::size_t i = 0; i < end; ++i) decisions.push_back(found[i]);
  Verdict verdict = conclude(decisions, [&](std::size_t i) { return !charges[i].shadow; });
  verdict.degraded = passed;
  return verdict;
}

}  // namespace weir
