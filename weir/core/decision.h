// One bucket's decision. A denial is a decision, never an Error. For a limit with both a rate and a quota see
// verdict.h.
#pragma once

#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

// The wait for a cost above the burst: waiting never helps. Protocols that report it use -1.
inline constexpr Duration kNever = Duration::max();

// The burst and remaining tokens of an id that nothing limits; the same in every protocol.
inline constexpr Count kUnbounded = -1;

struct Decision {
  bool allowed = true;
  Count burst = 0;                          // the bucket's size
  Count remaining = 0;                      // whole tokens left after this decision
  Duration retry_after = Duration::zero();  // denied: the exact wait for the same cost, or kNever; allowed: zero
  Duration reset_after = Duration::zero();  // until the bucket is full

  friend constexpr bool operator==(const Decision&, const Decision&) = default;
};

// Returns whether `a` is stricter than `b`: denied first, then the longer wait, then fewer remaining.
constexpr bool stricter(const Decision& a, const Decision& b) noexcept {
  if (a.allowed != b.allowed) return !a.allowed;
  if (a.retry_after != b.retry_after) return a.retry_after > b.retry_after;
  return a.remaining < b.remaining;
}

}  // namespace weir
