// Reads the JSON bodies of the decision API into queries, one object at a time. Strict: an unknown field is an error,
// so that a typo never means "no limit".
#pragma once

#include <optional>

#include "weir/core/query.h"
#include "weir/protocol/http/fault_status.h"
#include "weir/protocol/session.h"
#include "weir/wire/json.h"

namespace weir {

// {"limit", "id", "cost"}, or {"charges": [{"limit", "id", "cost"}, …], "charge": "together" | "in-order"}, or
// {"request": {"ip", "method", "path", "host", "headers": {…}, "form": {…}}, "cost"}. Writes all of `query` but its
// mode; what it points to is kept in `queries`.
std::optional<ApiError> read_check(JsonValue value, Queries& queries, Query& query);

// {"key", "burst", "count", "period", "cost"}: the caller brings the numbers.
std::optional<ApiError> read_throttle(JsonValue value, Queries& queries, Query& query);

}  // namespace weir
