#include "weir/simulate/advice.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "weir/algorithm/gcra.h"

namespace weir::simulate {
namespace {

using std::chrono::seconds;

// Binary search among numbers that a Limit can have.
class Search {
 public:
  Search(Spool& spool, std::size_t places, std::uint64_t tolerated)
      : spool_(spool), places_(places), tolerated_(tolerated) {}

  // Returns whether these numbers deny few enough requests; remembers them if they do.
  bool passes(Count count, Duration period, Count burst) {
    const Result<Limit> limit = Limit::make(count, period, burst);
    if (!limit) return false;
    const Result<std::uint64_t> denied = count_denied(*limit, spool_, places_, tolerated_);
    if (!denied) {
      failure_ = denied.error().detail;
      return false;
    }
    if (*denied > tolerated_) return false;
    found_ = {*limit, *denied};
    return true;
  }

  // Finds the smallest value in (low, high] that passes. REQUIRES: `low` does not pass, `high` does.
  template <class Passes>
  void halve(std::int64_t low, std::int64_t high, Passes tries) {
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (tries(middle) ? high : low) = middle;
    }
  }

  bool tolerates() const noexcept { return tolerated_ > 0; }
  const std::optional<Advice::Found>& found() const noexcept { return found_; }
  const std::string& failure() const noexcept { return failure_; }

 private:
  Spool& spool_;
  std::size_t places_;
  std::uint64_t tolerated_;
  std::optional<Advice::Found> found_;
  std::string failure_;
};

void search_burst(const Limit& limit, Count demanded, Search& search) {
  const auto passes = [&](Count burst) { return search.passes(limit.count(), limit.period(), burst); };
  if (passes(1) || !passes(demanded)) return;
  // If no request may be denied, the demand is the answer.
  const Count low = !search.tolerates() ? demanded - 1 : 1;
  search.halve(low, demanded, passes);
}

// Searches the count per period of the limit. If 1 is enough, searches the longest multiple of the period.
void search_rate(const Limit& limit, Search& search) {
  const auto passes = [&](Count count) { return search.passes(count, limit.period(), limit.burst()); };
  if (!passes(1)) {
    Count high = std::max<Count>(limit.count(), 2);
    Count low = 1;
    while (!passes(high)) {
      if (high > limit.period().count() / 2) return;  // even the fastest rate denies too many
      low = high;
      high *= 2;
    }
    search.halve(low, high, passes);
    return;
  }
  const auto slow = [&](std::int64_t periods) { return search.passes(1, limit.period() * periods, limit.burst()); };
  constexpr std::int64_t kPeriodsMax = 1 << 20;
  std::int64_t low = 1;
  std::int64_t high = 2;
  while (high <= kPeriodsMax && slow(high)) {
    low = high;
    high *= 2;
  }
  // Finds the longest period that passes: the same search with the sides swapped.
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (slow(middle) ? low : high) = middle;
  }
}

// Returns the requests of clients that can be denied at this burst. A client whose total cost fits into it never is.
Result<Spool> possible_denials(const Limit& limit, Spool& all, std::size_t places) {
  std::vector<std::uint64_t> costs(places);
  const auto sum = [&](std::span<const SpooledRequest> requests) {
    for (const SpooledRequest& request : requests) costs[request.client] += request.cost;
    return true;
  };
  if (Result<void> read = all.each(sum); !read) return read.error();
  Spool kept;
  Result<void> wrote;
  const auto keep = [&](std::span<const SpooledRequest> requests) {
    for (const SpooledRequest& request : requests) {
      if (costs[request.client] <= static_cast<std::uint64_t>(limit.burst())) continue;
      wrote = kept.add(request);
      if (!wrote) return false;
    }
    return true;
  };
  if (Result<void> read = all.each(keep); !read) return read.error();
  if (!wrote) return wrote.error();
  return kept;
}

}  // namespace

Result<std::uint64_t> count_denied(const Limit& limit, Spool& spool, std::size_t places, std::uint64_t enough) {
  std::vector<std::int64_t> tats(places);
  const std::int64_t interval = limit.interval().count();
  const std::int64_t window = limit.window().count();
  const auto burst = static_cast<std::uint64_t>(limit.burst());
  std::uint64_t denied = 0;
  const auto count = [&](std::span<const SpooledRequest> requests) {
    for (const SpooledRequest& request : requests) {
      std::int64_t& tat = tats[request.client];
      if (request.cost == 0) {
        tat = 0;
        continue;
      }
      // gcra::spend() without the decision. The numbers never change here, so the TAT is within a window.
      const std::int64_t from = std::max(tat, request.time_ns);
      if (request.cost > burst || from - request.time_ns > window - interval * request.cost) {
        if (++denied > enough) return false;
      } else {
        tat = from + interval * request.cost;
      }
    }
    return true;
  };
  if (Result<void> read = spool.each(count); !read) return read.error();
  return denied;
}

Advice advise(const Limit& limit, Spool& spool, std::size_t places, std::uint64_t tolerated, Count demanded) {
  Advice advice;
  advice.tolerated = tolerated;
  Search burst(spool, places, tolerated);
  search_burst(limit, demanded, burst);
  advice.burst = burst.found();
  Result<Spool> possible = possible_denials(limit, spool, places);
  if (!possible) {
    advice.none = possible.error().detail;
    return advice;
  }
  Search rate(*possible, places, tolerated);
  search_rate(limit, rate);
  advice.rate = rate.found();
  advice.none = !burst.failure().empty() ? burst.failure() : rate.failure();
  return advice;
}

}  // namespace weir::simulate
