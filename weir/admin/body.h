// The JSON objects that writes bring along. Strict: a field nobody reads is an error.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/admin/admin_shared.h"
#include "weir/admin/request.h"
#include "weir/admin/work.h"
#include "weir/base/text.h"
#include "weir/core/limit.h"

namespace weir::admin {

// An object with some of these fields, or the refusal: 415, bad_json, unknown_field, bad_value. Valid until the
// shared's reader reads again.
std::optional<Reply> read_object(AdminShared& shared, const Request& request, std::span<const std::string_view> known,
                                 std::optional<JsonValue>& object);

// Fields of that object; absent or null: nothing. The Error names the field and the rule.
Result<std::optional<std::string>> text_field(JsonValue object, std::string_view name);
Result<std::optional<Count>> count_field(JsonValue object, std::string_view name);
// "10m". More than zero.
Result<std::optional<Duration>> duration_field(JsonValue object, std::string_view name);
// "200/s", or 200, which is 200/s.
Result<std::optional<Rate>> rate_field(JsonValue object, std::string_view name);

}  // namespace weir::admin
