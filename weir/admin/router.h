// What can be called: a table of method, path, who may, and the function that does it.
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

// A pattern's segments are words, or "{}": one segment, or as the last one everything that is left, slashes included.
struct Route {
  std::string_view method;
  std::string_view pattern;
  Needs needs = Needs::read;
  Outcome (*call)(AdminShared& shared, const Request& request) = nullptr;
  std::span<const std::string_view> parameters;
  bool any_parameters = false;  // of calls that others made up: probes and /metrics
};

struct Found {
  const Route* route = nullptr;      // null: none
  std::string allow;                 // what this path takes, if it is one of ours; then `route` may be null
  std::array<std::string, 2> parts;  // decoded
  bool bad_escape = false;
};

// HEAD finds the route of GET.
Found find_route(std::string_view method, std::string_view path);

}  // namespace weir::admin
