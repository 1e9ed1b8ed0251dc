// Numbers that are known only at run time go through Limit::make, which can say no.
// error: ('count' is not a constant expression|function parameter 'count' with unknown value)
#include <chrono>

#include "weir/core/limit.h"

#ifdef WRONG
weir::Limit limit(weir::Count count) {
  return weir::Limit::per_second(count);
}
#else
weir::Result<weir::Limit> limit(weir::Count count) {
  return weir::Limit::make(count, std::chrono::seconds{1}, count);
}
#endif
