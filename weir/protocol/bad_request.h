// The log line of a request that is answered with an error of the caller's.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/log.h"

namespace weir {

// At debug, and for nothing otherwise. `peer` may be empty.
inline void log_bad_request(Log* log, std::string_view peer, std::string_view error) {
  if (log == nullptr || !log->enabled(LogLevel::debug)) return;
  std::string line = "bad request: client=";
  line.append(peer.empty() ? "local" : peer).append(" error=").append(error);
  log->write(LogLevel::debug, line);
}

}  // namespace weir
