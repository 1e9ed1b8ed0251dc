// The answer to a request: every limit's decision, in the order charged, and which of them speaks for the request.
#pragma once

#include <cstddef>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/core/decision.h"

namespace weir {

using Decisions = InlineList<Decision, bounds::charges_max>;

struct Verdict {
  Decisions all;  // in order; with in_order charging, only those that were asked
  std::size_t strictest =
      0;                  // index into `all` of the one that speaks; shadow decisions speak only if there is no other
  bool allowed = true;    // no limit that enforces denied; a verdict without decisions allows
  bool degraded = false;  // the store could not be asked and the policy let it pass
  std::size_t forgotten = 0;  // of a reset: buckets that were not full
};

}  // namespace weir
