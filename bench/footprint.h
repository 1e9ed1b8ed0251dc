// Memory per bucket.
#pragma once

#include <cstdint>

namespace weir::bench {

struct Footprint {
  std::uint64_t keys;
  bool names;
  double resident;  // bytes per bucket: what the process gained, from /proc/self/statm
  double counted;   // the same by the table's own count
};

// A fresh process, a table with the default bound, filled and left alone until maintain() has nothing to do.
Footprint measure_footprint(std::uint64_t keys, bool names);

}  // namespace weir::bench
