// A bucket that holds nothing is refused by the compiler.
// error: this_limit_breaks_a_rule
#include "weir/core/limit.h"

#ifdef WRONG
constexpr weir::Limit kLimit = weir::Limit::per_minute(60).with_burst(0);
#else
constexpr weir::Limit kLimit = weir::Limit::per_minute(60).with_burst(1);
#endif
