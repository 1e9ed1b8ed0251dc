// A deadline on our timeline cannot be checked against another clock.
// error: (no match for 'operator<'|invalid operands to binary expression)
#include <chrono>

#include "weir/base/time.h"

#ifdef WRONG
bool expired(weir::Time deadline, std::chrono::system_clock::time_point now) {
  return deadline < now;
}
#else
bool expired(weir::Time deadline, weir::Time now) {
  return deadline < now;
}
#endif
