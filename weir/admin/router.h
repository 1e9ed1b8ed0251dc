// The calls of the admin API: a table of method, path, required permission and handler.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/admin/request.h"
#include "weir/admin/tokens.h"
#include "weir/admin/work.h"

namespace weir::admin {

struct AdminShared;

// A pattern's segments are words or "{}", which matches one segment, or at the end all remaining ones, including
// slashes.
struct Route {
  std::string_view method;
  std::string_view pattern;
  Permission needs = Permission::read;
  Outcome (*call)(AdminShared& shared, const Request& request) = nullptr;
  std::span<const std::string_view> parameters;
  bool any_parameters = false;  // for calls with parameters of other systems: probes and /metrics
};

struct RouteMatch {
  const Route* route = nullptr;      // null: none
  std::string allow;                 // the methods of a known path, even if `route` is null
  std::array<std::string, 2> parts;  // decoded
  bool bad_escape = false;
};

// Finds the route of a request. HEAD matches GET.
RouteMatch find_route(std::string_view method, std::string_view path);

}  // namespace weir::admin
