#include "weir/store/failover/fallback.h"

#include <algorithm>
#include <span>
#include <string>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/charging.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/assert.h"
#include "weir/store/memory/charging.h"

namespace weir {
namespace {

bool enforces_refusal(const Charge& charge) {
  return !charge.shadow && charge.on_failure == FailurePolicy::fail_closed;
}

// False for probes and for what operators look at.
bool is_request(const Question& question) {
  if (question.mode == Mode::look) return false;
  return std::ranges::none_of(question.charges,
                              [](const Charge& charge) { return charge.rate && charge.rate->key == kProbeBucket; });
}

Error refusal(const Charge& charge) {
  std::string who = charge.limit_name.empty() ? "" : " for limit \"" + std::string(charge.limit_name) + "\"";
  return Error{Fault::unavailable, "the store is unavailable and failure_policy" + who + " is failClosed",
               charge.failure_code};
}

// The buckets of one question, for algorithm/charging.h. Limits with inMemoryFallback use the local table; a bucket of
// a limit that passes through counts as full and stores nothing.
class FallbackBuckets {
 public:
  FallbackBuckets(Table& table, Count share, Now now, const Clock& clock) noexcept
      : local_(table, now, clock), share_(share), now_(now) {}

  std::uint64_t hash(Key key) noexcept { return local_.hash(key); }
  Decision spend(const ChargedBucket& bucket) const noexcept {
    if (!is_local(bucket)) return decide_full(bucket, bucket.cost, true);
    return with_share(bucket, [this](const ChargedBucket& shared) { return local_.spend(shared); });
  }
  Decision peek(const ChargedBucket& bucket) const noexcept {
    if (!is_local(bucket)) return decide_full(bucket, bucket.cost, false);
    return with_share(bucket, [this](const ChargedBucket& shared) { return local_.peek(shared); });
  }
  Decision look(const ChargedBucket& bucket) const noexcept {
    if (!is_local(bucket)) return decide_full(bucket, bucket.cost, false);
    return with_share(bucket, [this](const ChargedBucket& shared) { return local_.look(shared); });
  }
  Decision refund(const ChargedBucket& bucket) const noexcept {
    if (!is_local(bucket)) return decide_full(bucket, 0, false);
    return with_share(bucket, [this](const ChargedBucket& shared) { return local_.refund(shared); });
  }
  bool reset(const ChargedBucket& bucket) const noexcept { return local_.reset(bucket); }
  void undo(const ChargedBucket& bucket, const Decision& spent) const noexcept {
    if (!is_local(bucket)) return;
    (void)with_share(bucket, [&](const ChargedBucket& shared) {
      local_.undo(shared, spent);
      return spent;
    });
  }

 private:
  static bool is_local(const ChargedBucket& bucket) noexcept {
    return bucket.charge->on_failure == FailurePolicy::in_memory_fallback;
  }

  Decision decide_full(const ChargedBucket& bucket, Count cost, bool takes) const noexcept {
    if (bucket.is_quota()) {
      return takes ? quota::spend(bucket.quota(), 0, cost, now_.wall).decision
                   : quota::peek(bucket.quota(), 0, cost, now_.wall);
    }
    const Limit& limit = bucket.rate().limit;
    return takes ? gcra::spend(limit, now_.time, cost, now_.time).decision
                 : gcra::peek(limit, now_.time, cost, now_.time);
  }

  // Calls `ask` with this server's share of the limit. A cost that fits the limit but not the share gets a finite wait,
  // because it may be allowed once the store is available again.
  template <class Ask>
  Decision with_share(const ChargedBucket& bucket, Ask ask) const noexcept {
    Charge charge = *bucket.charge;
    if (charge.rate) charge.rate->limit = divide(charge.rate->limit, share_);
    if (charge.quota) charge.quota->quota.size = std::max<Count>(charge.quota->quota.size / share_, 1);
    ChargedBucket shared = bucket;
    shared.charge = &charge;
    Decision decision = ask(shared);
    const bool quota = bucket.is_quota();
    if (decision.retry_after != kNever || bucket.cost > (quota ? bucket.quota().size : bucket.rate().limit.burst())) {
      return decision;
    }
    const Window& window = quota ? bucket.quota().window : Window{};
    decision.retry_after = quota ? window.end - window.start : bucket.rate().limit.window();
    return decision;
  }

  TableBuckets local_;
  const Count share_;
  const Now now_;
};

}  // namespace

Limit divide(const Limit& limit, Count share) {
  WEIR_ASSERT(share >= 1 && share <= bounds::share_max);
  // Only a bucket with fewer tokens than there are servers has an interval this long: its share is one token.
  const bool longest = limit.interval() > bounds::window_max / share;
  const Duration interval = longest ? bounds::window_max : limit.interval() * share;
  return *Limit::make(1, interval, std::max<Count>(limit.burst() / share, 1));
}

Fallback::Fallback(Table& table, Count share, FallbackCounts& counts, const Clock& clock) noexcept
    : table_(table), share_(share), counts_(counts), clock_(clock) {
  WEIR_ASSERT(share >= 1 && share <= bounds::share_max);
}

Result<Verdict> Fallback::decide(const Question& question, Now now) {
  if (question.mode == Mode::reset) {
    (void)weir::charge(table_, question.charges, Mode::reset, question.order, now, clock_);
    const int code = question.charges.empty() ? 0 : question.charges.front().failure_code;
    return Error{Fault::unavailable, "the store is unavailable; nothing was reset", code};
  }
  const auto closed = std::ranges::find_if(question.charges, enforces_refusal);
  if (closed != question.charges.end()) {
    if (is_request(question)) counts_.add(FailurePolicy::fail_closed);
    return refusal(*closed);
  }
  return decide_open(question, now);
}

Verdict Fallback::decide_open(const Question& question, Now now) {
  FallbackBuckets buckets(table_, share_, now, clock_);
  Verdict verdict = weir::charge(buckets, question.charges, question.mode, question.order);
  bool passed = question.charges.empty();
  bool local = false;
  for (const Charge& charge : question.charges.first(verdict.all.size())) {
    const bool is_local = charge.on_failure == FailurePolicy::in_memory_fallback;
    (is_local ? local : passed) = true;
  }
  const bool counts = is_request(question);
  if (local && counts) counts_.add(FailurePolicy::in_memory_fallback);
  if (passed && counts) counts_.add(FailurePolicy::pass_through);
  verdict.degraded = passed || local;
  return verdict;
}

}  // namespace weir
