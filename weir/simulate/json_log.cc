#include "weir/simulate/json_log.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/simulate/log_text.h"
#include "weir/simulate/log_time.h"

namespace weir::simulate {
namespace {

constexpr std::string_view kTime = "time";
constexpr std::string_view kCookie = "cookie:";

// The usual member names of JSON logs. Weir's own come first.
struct UsualName {
  std::string_view field;
  std::vector<std::string> members;
};

const std::vector<UsualName>& usual_names() {
  static const std::vector<UsualName> names{
      {kTime, {"time", "timestamp", "@timestamp", "ts", "time_iso8601", "start_time", "msec", "t"}},
      {"ip", {"client", "client_ip", "ip", "clientIp"}},
      {"peer", {"remote_addr", "remote_ip", "peer", "downstream_remote_address"}},
      {"method", {"method", "request_method", "http_method"}},
      {"path", {"path", "request_uri", "uri", "url", "target"}},
      {"host", {"host", "http_host", "authority", "server_name"}},
      {"header:user-agent", {"user_agent", "http_user_agent", "agent"}},
      {"header:referer", {"referer", "http_referer", "referrer"}},
      {"header:x-forwarded-for", {"x_forwarded_for", "http_x_forwarded_for"}},
      {"header:x-request-id", {"request_id", "x_request_id"}},
  };
  return names;
}

// Converts a field given by the user to the name of an attribute.
std::string attribute_of(std::string_view field) {
  if (field == "apikey") return "header:x-api-key";
  if (field.starts_with(kCookie)) return "header:cookie";
  return field.starts_with("header:") ? to_lower(field) : std::string(field);
}

std::vector<std::string> json_fields(const ReaderOptions& options) {
  std::vector<std::string> fields;
  for (const UsualName& usual : usual_names()) {
    if (usual.field != kTime) fields.emplace_back(usual.field);
  }
  for (const FieldName& name : options.fields) {
    const std::string field = attribute_of(name.field);
    const bool known = std::ranges::find(fields, field) != fields.end() && field != "header:cookie";
    if (name.field != kTime && !known && fields.size() < bounds::log_fields_max) fields.push_back(field);
  }
  return fields;
}

std::optional<JsonValue> find_member(JsonValue object, std::string_view name) {
  if (!object.is(JsonKind::object)) return std::nullopt;
  if (std::optional<JsonValue> found = object.find(name)) return found;
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<JsonValue> inner = object.find(name.substr(0, dot));
  return inner ? find_member(*inner, name.substr(dot + 1)) : std::nullopt;
}

std::optional<JsonValue> find_first(JsonValue line, std::span<const std::string> members) {
  for (const std::string& member : members) {
    std::optional<JsonValue> found = find_member(line, member);
    if (found && !found->is(JsonKind::null)) return found;
  }
  return std::nullopt;
}

// Returns the text of a string or a number; empty for anything else.
std::string_view scalar(JsonValue value) noexcept {
  if (value.is(JsonKind::string)) return present(value.string());
  return value.is(JsonKind::number) ? value.number() : std::string_view{};
}

std::string_view text_of(JsonValue object, std::string_view member) {
  const std::optional<JsonValue> found = object.find(member);
  return found && found->is(JsonKind::string) ? found->string() : std::string_view{};
}

}  // namespace

JsonLog::JsonLog(const ReaderOptions& options) : LogReader(json_fields(options)), zone_(options.zone) {
  sources_.resize(fields().size());
  cookies_.resize(fields().size());
  for (const UsualName& usual : usual_names()) {
    if (usual.field == kTime) time_.members = usual.members;
    const auto found = std::ranges::find(fields(), usual.field);
    if (found != fields().end()) sources_[static_cast<std::size_t>(found - fields().begin())].members = usual.members;
  }
  for (const FieldName& name : options.fields) {
    if (name.field == kTime) {
      time_.members = {name.member};
      continue;
    }
    const std::string field = attribute_of(name.field);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const bool taken = field == "header:cookie" && !sources_[i].members.empty();
      if (fields()[i] != field || taken) continue;
      sources_[i].members = {name.member};
      if (name.field.starts_with(kCookie)) sources_[i].cookie = name.field.substr(kCookie.size());
      break;
    }
  }
}

Result<void> JsonLog::read(std::string_view line, LogLine& out) {
  out.clear();
  const Result<JsonValue> value = json_.read(line);
  if (!value) return value.error();
  if (!value->is(JsonKind::object)) {
    return Error{Fault::invalid, "a line must be an object, not " + std::string(name_of(value->kind()))};
  }
  if (Result<void> read = read_time(*value, out); !read) return read;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::optional<JsonValue> found = find_first(*value, sources_[i].members);
    if (!found) continue;
    out.values[i] = scalar(*found);
    if (sources_[i].cookie.empty() || out.values[i].empty()) continue;
    cookies_[i] = sources_[i].cookie + "=" + std::string(out.values[i]);
    out.values[i] = cookies_[i];
  }
  for (const std::size_t address : {std::size_t{0}, std::size_t{1}}) {
    std::string_view& text = out.values[address];
    if (text.starts_with('[') || std::ranges::count(text, ':') == 1) text = without_port(text);
    if (!text.empty() && !looks_like_address(text)) {
      return Error{Fault::invalid, "client " + quote(text) + " is not an address"};
    }
  }
  return read_counted(*value, out);
}

Result<void> JsonLog::read_time(JsonValue line, LogLine& out) const {
  const std::optional<JsonValue> found = find_first(line, time_.members);
  if (!found) {
    const bool usual = time_.members.size() > 1;
    return Error{Fault::invalid, usual ? "there is no time; say which member has it: --field time=NAME"
                                       : "there is no " + time_.members[0]};
  }
  const std::string_view text = scalar(*found);
  const bool epoch = found->is(JsonKind::number) || text.find_first_not_of("0123456789.") == std::string_view::npos;
  const Result<Stamp> stamp = epoch ? read_epoch(text) : read_rfc3339(text, zone_);
  if (!stamp) return stamp.error();
  out.time = stamp->time;
  out.resolution = stamp->resolution;
  return {};
}

Result<void> JsonLog::read_counted(JsonValue line, LogLine& out) const {
  out.route = text_of(line, "route");
  out.refused = text_of(line, "decision") == "refused";
  const std::optional<JsonValue> limits = line.find("limits");
  if (!limits || !limits->is(JsonKind::array)) return {};
  for (const JsonValue item : limits->items()) {
    if (!item.is(JsonKind::object)) return Error{Fault::invalid, "limits must be an array of objects"};
    NamedCharge counted{text_of(item, "limit"), text_of(item, "id"), 1, text_of(item, "tier")};
    if (counted.limit.empty() || counted.id.empty()) {
      return Error{Fault::invalid, "limits: an entry has no limit or no id"};
    }
    if (const std::optional<JsonValue> cost = item.find("cost")) {
      const std::optional<std::int64_t> number = cost->is(JsonKind::number) ? cost->integer() : std::nullopt;
      if (!number || *number < 0) return Error{Fault::invalid, "limits: a cost is not a whole number"};
      counted.cost = *number;
    }
    if (out.counted.size() == bounds::charges_max) return Error{Fault::invalid, "limits has more than 16 entries"};
    out.counted.push_back(counted);
  }
  return {};
}

}  // namespace weir::simulate
