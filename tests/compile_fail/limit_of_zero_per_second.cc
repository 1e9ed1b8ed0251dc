// A limit that never gives a token is refused by the compiler.
// error: this_limit_breaks_a_rule
#include "weir/core/limit.h"

#ifdef WRONG
weir::Limit limit = weir::Limit::per_second(0);
#else
weir::Limit limit = weir::Limit::per_second(1);
#endif
