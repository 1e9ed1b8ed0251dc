// The answer to a request: every limit's decision, in the order charged, and which of them speaks for the request.
#pragma once

#include <cstddef>
#include <type_traits>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/core/decision.h"
#include "weir/core/key.h"

namespace weir {

// What one limit decided: its rate, its quota, or both. The stricter of the two speaks for the limit.
class LimitDecision {
 public:
  constexpr LimitDecision() noexcept = default;
  // Of a limit with one bucket; also of one that asked no bucket: a block, or an id that nothing limits.
  constexpr LimitDecision(const Decision& only, Kind kind = Kind::bucket) noexcept : first_(only), stricter_(kind) {}
  // The same, as `decide()` makes it: in its place, because a copy of what was just written costs a tenth of a spend.
  template <class Decide>
  requires std::is_invocable_r_v<Decision, Decide>
  constexpr LimitDecision(Decide&& decide, Kind kind) noexcept : first_(decide()), stricter_(kind) {}
  constexpr LimitDecision(const Decision& rate, const Decision& quota) noexcept
      : first_(rate),
        second_(quota),
        has_both_(true),
        stricter_(weir::stricter(quota, rate) ? Kind::quota : Kind::bucket) {}

  constexpr bool allowed() const noexcept { return strictest().allowed; }
  // The stricter half's decision; of equals, the rate's.
  constexpr const Decision& strictest() const noexcept {
    return has_both_ && stricter_ == Kind::quota ? second_ : first_;
  }
  // Whose decision strictest() is.
  constexpr Kind stricter() const noexcept { return stricter_; }
  constexpr bool has_both() const noexcept { return has_both_; }
  // The decision of one half; null: the limit has no such half.
  constexpr const Decision* half(Kind kind) const noexcept {
    if (has_both_) return kind == Kind::bucket ? &first_ : &second_;
    return kind == stricter_ ? &first_ : nullptr;
  }

  friend constexpr bool operator==(const LimitDecision&, const LimitDecision&) = default;

 private:
  Decision first_;   // the rate's, or the only one
  Decision second_;  // the quota's, if has_both_
  bool has_both_ = false;
  Kind stricter_ = Kind::bucket;
};

using Decisions = InlineList<LimitDecision, bounds::charges_max>;

struct Verdict {
  Decisions all;  // in order; with in_order charging, only those that were asked
  std::size_t strictest =
      0;                  // index into `all` of the one that speaks; shadow decisions speak only if there is no other
  bool allowed = true;    // no limit that enforces denied; a verdict without decisions allows
  bool degraded = false;  // the store could not be asked and the policy let it pass
  std::size_t forgotten = 0;  // of a reset: buckets that were not full

  // The decision that speaks for the request. REQUIRES: !all.empty().
  const Decision& speaker() const noexcept { return all[strictest].strictest(); }
};

// What one charge may do to a verdict.
enum class Say : unsigned char { enforces, alternative, shadow };

// Of two charges of one bucket: what the bucket may do.
constexpr Say stricter(Say a, Say b) noexcept {
  return a < b ? a : b;
}

// The verdict of the decisions: the strictest of those that enforce speaks, or of all if none does. `say_of(i)` tells
// what the i-th may do: alternatives deny if all of them do. Every store answers with this.
template <class SayOf>
Verdict conclude(const Decisions& decisions, SayOf say_of) noexcept {
  Verdict verdict;
  verdict.all = decisions;
  bool enforced = false;
  bool has_alternative = false;  // with room
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    has_alternative |= say_of(i) == Say::alternative && decisions[i].allowed();
  }
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Say say = say_of(i);
    const bool may_deny = say == Say::enforces || (say == Say::alternative && !has_alternative);
    if (may_deny && !decisions[i].allowed()) verdict.allowed = false;
    const bool better = may_deny == enforced ? stricter(decisions[i].strictest(), verdict.speaker()) : may_deny;
    if (i == 0 || better) verdict.strictest = i;
    enforced |= may_deny;
  }
  return verdict;
}

}  // namespace weir
