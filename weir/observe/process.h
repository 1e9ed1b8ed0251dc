// What the kernel knows about this process, as the `process_*` metrics of Prometheus client libraries.
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/time.h"

namespace weir {

// 0 where the kernel does not tell.
struct ProcessStats {
  Duration cpu{};  // user and system time
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t max_fds = 0;  // the soft limit
  Wall started{};
};

// What /proc/self/stat and the line `btime` of /proc/stat say. `ticks` is sysconf(_SC_CLK_TCK), `page` the page size.
// Text that does not have the format gives zeros.
ProcessStats process_stats_from(std::string_view self_stat, std::string_view proc_stat, std::uint64_t ticks,
                                std::uint64_t page);

// As of now. Reads /proc, never a disk.
ProcessStats read_process_stats();

}  // namespace weir
