// Writes the audit record of a change to the log.
#pragma once

#include <string_view>

#include "weir/admin/admin_shared.h"
#include "weir/admin/request.h"
#include "weir/observe/audit.h"

namespace weir::admin {

// Returns the caller's address, or "local" for a UNIX socket.
inline std::string_view caller(const Request& request) noexcept {
  return request.peer.empty() ? std::string_view("local") : request.peer;
}

// `before` and `after` are JSON; empty means nothing.
inline void audit(const AdminShared& shared, std::string_view who, Wall wall, std::string_view action,
                  std::string_view target, std::string_view before, std::string_view after) {
  shared.log({wall, who, action, target, before, after});
}

}  // namespace weir::admin
