#include "weir/admin/body.h"

#include <algorithm>

#include "weir/wire/http.h"

namespace weir::admin {
namespace {

Error bad_field(std::string_view name, std::string_view rule) {
  return Error{Fault::invalid, std::string(name).append(" ").append(rule)};
}

std::optional<JsonValue> find(JsonValue object, std::string_view name) {
  const auto value = object.find(name);
  return value && value->is(JsonKind::null) ? std::nullopt : value;
}

}  // namespace

std::optional<Reply> read_object(AdminShared& shared, const Request& request, std::span<const std::string_view> known,
                                 std::optional<JsonValue>& object) {
  if (!request.content_type.empty() && !same_word(request.content_type, "application/json")) {
    return refuse(415, "unsupported_media_type",
                  "the content must be application/json, not " + quote(request.content_type));
  }
  const Result<JsonValue> value = shared.json.read(request.content);
  if (!value) return refuse(400, "bad_json", value.error().detail);
  if (!value->is(JsonKind::object)) {
    return refuse(400, "bad_value", "the content must be an object, not " + std::string(name_of(value->kind())));
  }
  for (const auto& [key, member] : value->members()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    std::string message = "unknown field " + quote(key) + "; known are ";
    for (std::size_t i = 0; i < known.size(); ++i) message.append(i == 0 ? "" : ", ").append(known[i]);
    return refuse(400, "unknown_field", message);
  }
  object = *value;
  return {};
}

Result<std::optional<std::string>> text_field(JsonValue object, std::string_view name) {
  const auto value = find(object, name);
  if (!value) return std::optional<std::string>{};
  if (!value->is(JsonKind::string)) return bad_field(name, "must be a string");
  return std::optional<std::string>(value->string());
}

Result<std::optional<Count>> count_field(JsonValue object, std::string_view name) {
  const auto value = find(object, name);
  if (!value) return std::optional<Count>{};
  const auto number = value->is(JsonKind::number) ? value->integer() : std::nullopt;
  if (!number || *number < 1) return bad_field(name, "must be a whole number, at least 1");
  return std::optional<Count>(*number);
}

Result<std::optional<Duration>> duration_field(JsonValue object, std::string_view name) {
  const auto value = find(object, name);
  if (!value) return std::optional<Duration>{};
  if (!value->is(JsonKind::string)) return bad_field(name, "must be a duration in quotes, such as \"10m\"");
  const Result<Duration> duration = parse_duration(value->string());
  if (!duration) return bad_field(name, duration.error().detail);
  if (*duration <= Duration::zero()) return bad_field(name, "must be more than zero");
  return std::optional<Duration>(*duration);
}

Result<std::optional<Rate>> rate_field(JsonValue object, std::string_view name) {
  const auto value = find(object, name);
  if (!value) return std::optional<Rate>{};
  const bool number = value->is(JsonKind::number);
  if (!number && !value->is(JsonKind::string)) return bad_field(name, "must be a rate such as \"200/s\", or a number");
  const Result<Rate> rate = parse_rate(number ? std::string(value->number()) + "/s" : std::string(value->string()));
  if (!rate) return rate.error();  // the error names the value
  return std::optional<Rate>(*rate);
}

}  // namespace weir::admin
