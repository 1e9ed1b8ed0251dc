// Reads the JSON objects in the content of writes. Strict: an unknown field is an error.
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

// Reads an object that has only `known` fields, or returns the refusal: 415, bad_json, unknown_field, bad_value.
// `object` is valid until the shared JSON reader reads again.
std::optional<Reply> read_object(AdminShared& shared, const Request& request, std::span<const std::string_view> known,
                                 std::optional<JsonValue>& object);

// Read one field of the object; nullopt if it is absent or null. The Error names the field and the rule.
Result<std::optional<std::string>> text_field(JsonValue object, std::string_view name);
Result<std::optional<Count>> count_field(JsonValue object, std::string_view name);
// A duration such as "10m", greater than zero.
Result<std::optional<Duration>> duration_field(JsonValue object, std::string_view name);
// A rate such as "200/s"; a number n means n per second.
Result<std::optional<Rate>> rate_field(JsonValue object, std::string_view name);

}  // namespace weir::admin
