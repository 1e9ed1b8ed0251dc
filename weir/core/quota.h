// A window counter: at most `size` tokens in the window that holds now, of the calendar or of a fixed length.
#pragma once

#include <chrono>

#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

// [start, end) on the wall clock: an hour, a day, a week or a month of some time zone, whose ends lie on whole minutes;
// or one of the windows of a fixed length since 1970, whose ends lie on whole seconds.
struct Window {
  Wall start;
  Wall end;

  friend constexpr bool operator==(const Window&, const Window&) = default;
};

struct Quota {
  Count size = 0;    // 1..bounds::quota_max; with windows that do not end on whole minutes 1..bounds::quick_quota_max
  Window window;     // the one that holds now
  Wall next_end;     // end of the window after it: a store with a clock of its own may already be there
  Duration every{};  // length of the windows since 1970; zero: the calendar's

  // True if windows may end between whole minutes, so that the state has the second too.
  constexpr bool is_quick() const noexcept { return every % std::chrono::minutes{1} != Duration::zero(); }

  friend constexpr bool operator==(const Quota&, const Quota&) = default;
};

}  // namespace weir
