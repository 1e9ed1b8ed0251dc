// The timeline of buckets and the wall clock have no common zero, so no difference.
// error: (no match for 'operator-'|invalid operands to binary expression)
#include "weir/base/time.h"

#ifdef WRONG
weir::Duration since(weir::Now now, weir::Wall then) {
  return now.time - then;
}
#else
weir::Duration since(weir::Now now, weir::Wall then) {
  return now.wall - then;
}
#endif
