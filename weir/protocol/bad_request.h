// The log line for a request that failed because of the caller's mistake.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/log.h"

namespace weir {

// Logs at debug level; costs nothing if that is off. `peer` may be empty.
inline void log_bad_request(Log* log, std::string_view peer, std::string_view error) {
  if (log == nullptr || !log->enabled(LogLevel::debug)) return;
  std::string line = "bad request: client=";
  line.append(peer.empty() ? "local" : peer).append(" error=").append(error);
  log->write(LogLevel::debug, line);
}

}  // namespace weir
