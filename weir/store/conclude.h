// What many decisions say together; every store answers with this.
#pragma once

#include <cstddef>

#include "weir/core/verdict.h"

namespace weir {

// The verdict of the decisions: the strictest of those that enforce speaks, or of all if none does. `enforces(i)` tells
// whether the i-th may deny.
template <class Enforces>
Verdict conclude(const Decisions& decisions, Enforces enforces) noexcept {
  Verdict verdict;
  verdict.all = decisions;
  bool enforced = false;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const bool may_deny = enforces(i);
    if (may_deny && !decisions[i].allowed) verdict.allowed = false;
    const bool better = may_deny == enforced ? stricter(decisions[i], decisions[verdict.strictest]) : may_deny;
    if (i == 0 || better) verdict.strictest = i;
    enforced |= may_deny;
  }
  return verdict;
}

}  // namespace weir
