// A reading of another clock is not a Time.
// error: (conversion from '.*system_clock.*' to non-scalar type '.*Timeline|no viable conversion from .*system_clock)
#include <chrono>

#include "weir/base/time.h"

#ifdef WRONG
weir::Time now = std::chrono::system_clock::now();
#else
weir::Wall now = std::chrono::system_clock::now();
#endif
