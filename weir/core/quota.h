// A calendar limit: at most `size` tokens in the window of the calendar that holds now.
#pragma once

#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

// [start, end) on the wall clock: an hour, a day, a week or a month of some time zone. Ends lie on whole minutes.
struct Window {
  Wall start;
  Wall end;

  friend constexpr bool operator==(const Window&, const Window&) = default;
};

struct Quota {
  Count size = 0;  // 1..bounds::quota_max
  Window window;   // the one that holds now
  Wall next_end;   // end of the window after it: a store with a clock of its own may already be there

  friend constexpr bool operator==(const Quota&, const Quota&) = default;
};

}  // namespace weir
