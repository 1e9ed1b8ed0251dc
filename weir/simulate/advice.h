// Which numbers would have denied no request, or at most a tolerated share: the smallest burst at the limit's rate, and
// the smallest rate at its burst. Exact: each suggestion was checked by replaying the requests with it, and the next
// smaller number denied too many. Looks at the limit alone, as if no other limit denied anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weir/base/result.h"
#include "weir/core/limit.h"
#include "weir/simulate/spool.h"

namespace weir::simulate {

struct Advice {
  std::uint64_t requests = 0;   // decided by the limit's own numbers
  std::uint64_t tolerated = 0;  // how many of them may be denied
  struct Found {
    Limit limit;
    std::uint64_t denied;  // with these numbers
  };
  std::optional<Found> burst;  // another burst; absent: none is large enough
  std::optional<Found> rate;   // another count and period; absent: none is fast enough
  std::string none;            // why there is no advice; empty: there is
};

// `places` is the size of the ClientTable. `tolerated` is how many requests may be denied. `demanded` is the burst that
// denies no request at the limit's rate.
Advice advise(const Limit& limit, Spool& spool, std::size_t places, std::uint64_t tolerated, Count demanded);

// Returns how many requests these numbers deny; stops counting beyond `enough`. Fails if the spool does.
Result<std::uint64_t> count_denied(const Limit& limit, Spool& spool, std::size_t places, std::uint64_t enough);

}  // namespace weir::simulate
