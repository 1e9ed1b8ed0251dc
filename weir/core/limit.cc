#include "weir/core/limit.h"

#include <string>

namespace weir {
namespace {

Error broken(std::string_view field, Count value, std::string_view rule) {
  return Error{Fault::invalid, std::string(field) + " " + std::to_string(value) + " " + std::string(rule)};
}

}  // namespace

Result<Limit> Limit::make(Count count, Duration period, Count burst) {
  switch (check(count, period, burst)) {
    case Flaw::none:
      return Limit(count, period, burst);
    case Flaw::count:
      return broken("count", count, "must be at least 1");
    case Flaw::period:
      return broken("period", period.count(), "ns must be longer than zero");
    case Flaw::count_over_period:
      return broken("count", count,
                    "is more than one per nanosecond of the period of " + std::to_string(period.count()) + " ns");
    case Flaw::burst:
      return broken("burst", burst, "must be at least 1");
    case Flaw::window:
      return broken("burst", burst, "would take more than 100 years to refill at this rate");
  }
  WEIR_ASSERT(false);
}

}  // namespace weir
