// What the kernel reports about this process, for the `process_*` metrics of Prometheus client libraries.
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/time.h"

namespace weir {

// 0 if the kernel does not report it.
struct ProcessStats {
  Duration cpu{};  // user and system time
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t max_fds = 0;  // the soft limit
  Wall started{};
};

// Parses /proc/self/stat and the line `btime` of /proc/stat. `ticks` is sysconf(_SC_CLK_TCK), `page` the page size.
// Returns zeros for text in another format.
ProcessStats process_stats_from(std::string_view self_stat, std::string_view proc_stat, std::uint64_t ticks,
                                std::uint64_t page);

// Returns the current values. Reads /proc, never a disk.
ProcessStats read_process_stats();

}  // namespace weir
