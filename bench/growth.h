// How long one request can take while the table grows under it.
#pragma once

#include <cstdint>

namespace weir::bench {

struct Growth {
  std::uint64_t keys;
  bool maintained;  // another thread calls maintain(), as in a server
  double p999999_us;
  double max_us;
  std::uint64_t over_1ms;
  double control_max_us;  // the longest first touch of a page by a thread that does nothing else, for as long
  double mean_ns;
};

// Inserts 0 to `keys` buckets in a fresh process; all times are the thread's own CPU time, reading it included.
Growth measure_growth(std::uint64_t keys, bool maintained);

}  // namespace weir::bench
