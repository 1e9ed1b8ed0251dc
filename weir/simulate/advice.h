// Which numbers would have denied nobody, or at most a given part of the requests: at the limit's rate the smallest
// burst, at its burst the smallest rate. Exact: a number is advised after the requests were gone through with it, and
// after the next smaller one denied more. The limit is looked at alone, as if no other denied anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weir/base/result.h"
#include "weir/core/limit.h"
#include "weir/simulate/spool.h"

namespace weir::simulate {

struct Advice {
  std::uint64_t requests = 0;   // that the limit's own numbers decide
  std::uint64_t tolerated = 0;  // of them, that may be denied
  struct Found {
    Limit limit;
    std::uint64_t denied;  // with these numbers
  };
  std::optional<Found> burst;  // another burst; nothing: none is enough
  std::optional<Found> rate;   // another count and period; nothing: none is enough
  std::string none;            // why there is no advice at all; empty: there is
};

// `places`: of clients, in the ClientTable. `tolerated` of the requests may be denied. `demanded`: the burst with which
// nobody is denied at the limit's rate.
Advice advise(const Limit& limit, Spool& spool, std::size_t places, std::uint64_t tolerated, Count demanded);

// How many requests those numbers deny; counting ends beyond `enough`. The Error is the spool's.
Result<std::uint64_t> count_denied(const Limit& limit, Spool& spool, std::size_t places, std::uint64_t enough);

}  // namespace weir::simulate
