// One bucket's answer. Denied is an answer, never an Error. What a limit with a rate and a quota answers: verdict.h.
#pragma once

#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

// The wait of a cost that exceeds the burst: no amount of waiting helps. On wires that have it, -1.
inline constexpr Duration kNever = Duration::max();

// Burst and remaining of an id that nothing limits; the same on every wire.
inline constexpr Count kUnbounded = -1;

struct Decision {
  bool allowed = true;
  Count burst = 0;                          // the whole bucket
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
