// The routes of the decision API. Private to this folder.
#pragma once

#include <string_view>

#include "weir/core/query.h"
#include "weir/protocol/http/check_handler.h"

namespace weir {

enum class CheckCall : unsigned char { check, throttle, authorize, healthz, readyz, startz, any };

struct CheckHandler::Route {
  std::string_view path;
  CheckCall call;
  Mode mode;
  std::string_view allow;
};

// Returns the single cost of the query, or 0 if it has none.
Count one_cost(const Query& query) noexcept;

}  // namespace weir
