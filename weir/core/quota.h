// A window counter: at most `size` tokens in the current window, which is a calendar window or has a fixed length.
#pragma once

#include <chrono>

#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

// [start, end) on the wall clock. Either an hour, day, week or month of some time zone, which ends on a whole minute;
// or one of the fixed-length windows counted from 1970, which ends on a whole second.
struct Window {
  Wall start;
  Wall end;

  friend constexpr bool operator==(const Window&, const Window&) = default;
};

struct Quota {
  Count size = 0;    // 1..bounds::quota_max; for windows that may end between whole minutes 1..bounds::quick_quota_max
  Window window;     // the current window
  Wall next_end;     // end of the next window; a store with its own clock may already be in that one
  Duration every{};  // length of fixed-length windows; zero: calendar windows

  // True if windows may end between whole minutes; then the state also stores the second.
  constexpr bool is_quick() const noexcept { return every % std::chrono::minutes{1} != Duration::zero(); }

  friend constexpr bool operator==(const Quota&, const Quota&) = default;
};

}  // namespace weir
