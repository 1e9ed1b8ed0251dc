// The answer to a request: every limit's decision, in the order charged, and which of them to report.
#pragma once

#include <cstddef>
#include <type_traits>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/core/decision.h"
#include "weir/core/key.h"

namespace weir {

// What one limit decided: its rate, its quota, or both. The stricter of the two is the limit's decision.
class LimitDecision {
 public:
  constexpr LimitDecision() noexcept = default;
  // For a limit with one bucket, or one that used no bucket: a block, or an id that nothing limits.
  constexpr LimitDecision(const Decision& only, Kind kind = Kind::bucket) noexcept : first_(only), stricter_(kind) {}
  // The same, but constructs the decision in place from `decide()`: copying it costs a tenth of a spend.
  template <class Decide>
  requires std::is_invocable_r_v<Decision, Decide>
  constexpr LimitDecision(Decide&& decide, Kind kind) noexcept : first_(decide()), stricter_(kind) {}
  constexpr LimitDecision(const Decision& rate, const Decision& quota) noexcept
      : first_(rate),
        second_(quota),
        has_both_(true),
        stricter_(weir::stricter(quota, rate) ? Kind::quota : Kind::bucket) {}
  // Reads only the halves in use: most limits have one, and an answer is copied on its way to the protocol.
  constexpr LimitDecision(const LimitDecision& other) noexcept : first_(other.first_) { copy_rest(other); }
  constexpr LimitDecision& operator=(const LimitDecision& other) noexcept {
    first_ = other.first_;
    copy_rest(other);
    return *this;
  }

  constexpr bool allowed() const noexcept { return strictest().allowed; }
  // The stricter half's decision; the rate's if both are equally strict.
  constexpr const Decision& strictest() const noexcept {
    return has_both_ && stricter_ == Kind::quota ? second_ : first_;
  }
  // Which half strictest() comes from.
  constexpr Kind stricter() const noexcept { return stricter_; }
  constexpr bool has_both() const noexcept { return has_both_; }
  // Returns the decision of one half, or null if the limit has no such half.
  constexpr const Decision* half(Kind kind) const noexcept {
    if (has_both_) return kind == Kind::bucket ? &first_ : &second_;
    return kind == stricter_ ? &first_ : nullptr;
  }

  friend constexpr bool operator==(const LimitDecision&, const LimitDecision&) = default;

 private:
  constexpr void copy_rest(const LimitDecision& other) noexcept {
    has_both_ = other.has_both_;
    stricter_ = other.stricter_;
    second_ = has_both_ ? other.second_ : Decision{};
  }

  Decision first_;   // the rate's decision, or the only one
  Decision second_;  // the quota's decision, if has_both_
  bool has_both_ = false;
  Kind stricter_ = Kind::bucket;
};

using Decisions = InlineList<LimitDecision, bounds::charges_max>;

struct Verdict {
  Decisions all;              // in order; with in_order charging, only up to the first denial
  std::size_t strictest = 0;  // index into `all` of the decision to report; a shadow decision only if there is no other
  bool allowed = true;        // no enforcing limit denied; true if there are no decisions
  bool degraded = false;      // the store was unavailable and the failure policy allowed the request
  std::size_t forgotten = 0;  // for a reset: number of buckets that were not full

  // The decision to report for the request. REQUIRES: !all.empty().
  const Decision& speaker() const noexcept { return all[strictest].strictest(); }
};

// How one charge may affect a verdict.
enum class Role : unsigned char { enforces, alternative, shadow };

// Combines the roles of two charges of the same bucket.
constexpr Role stricter(Role a, Role b) noexcept {
  return a < b ? a : b;
}

// Combines decisions into a verdict. It reports the strictest decision among those that may deny, or among all if none
// may. `role_of(i)` is the role of decision i. Alternatives may deny only if all of them do. Every store uses this.
template <class RoleOf>
Verdict conclude(const Decisions& decisions, RoleOf role_of) noexcept {
  Verdict verdict;
  verdict.all = decisions;
  bool enforced = false;
  bool has_alternative = false;  // an alternative that allows the request
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    has_alternative |= role_of(i) == Role::alternative && decisions[i].allowed();
  }
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Role role = role_of(i);
    const bool may_deny = role == Role::enforces || (role == Role::alternative && !has_alternative);
    if (may_deny && !decisions[i].allowed()) verdict.allowed = false;
    const bool better = may_deny == enforced ? stricter(decisions[i].strictest(), verdict.speaker()) : may_deny;
    if (i == 0 || better) verdict.strictest = i;
    enforced |= may_deny;
  }
  return verdict;
}

}  // namespace weir
