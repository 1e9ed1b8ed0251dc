#include "weir/external/reply.h"

#include <cstdint>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/external/protobuf.h"
#include "weir/external/reply_fields.h"
#include "weir/wire/json.h"

namespace weir::external {
namespace {

Result<void> check_size(std::string_view bytes) {
  if (bytes.size() <= bounds::service_reply_bytes_max) return {};
  return bad_reply("bad_body", "the reply has " + std::to_string(bytes.size()) + " bytes; at most " +
                                   std::to_string(bounds::service_reply_bytes_max) + " are read");
}

// ---- JSON ----

using Member = std::optional<JsonValue>;

// A null is the same as no member.
Member member(const JsonValue& object, std::string_view name) {
  const Member found = object.find(name);
  return found && found->is(JsonKind::null) ? std::nullopt : found;
}

std::string show(const JsonValue& value) {
  if (value.is(JsonKind::string)) return quote(value.string());
  if (value.is(JsonKind::number)) return quote(value.number());
  return std::string(name_of(value.kind()));
}

// A number, or a string of decimal digits.
std::optional<std::int64_t> integer_of(const JsonValue& value) {
  if (value.is(JsonKind::number)) return value.integer();
  if (!value.is(JsonKind::string)) return std::nullopt;
  const auto parsed = parse_integer(value.string());
  return parsed ? std::optional(*parsed) : std::nullopt;
}

Result<Count> required_integer(const JsonValue& object, std::string_view name, std::string_view word) {
  const Member found = member(object, name);
  if (!found) return bad_reply(word, std::string(name) + " is missing");
  if (const auto number = integer_of(*found)) return *number;
  return bad_reply(word, std::string(name) + " " + show(*found) + " must be an integer");
}

Result<Duration> required_period(const JsonValue& object) {
  const Member found = member(object, "period");
  if (!found) return bad_reply("bad_period", "period is missing");
  if (!found->is(JsonKind::string) && !found->is(JsonKind::number)) {
    return bad_reply("bad_period", "period is " + show(*found) + " and must be a duration like \"1s\"");
  }
  const Result<Duration> period =
      found->is(JsonKind::string) ? parse_duration(found->string()) : parse_seconds(found->number());
  if (!period) return bad_reply("bad_period", "period: " + period.error().detail);
  return *period;
}

// The optional fields with integers.
void take_integer(const JsonValue& object, std::string_view name, void (*take)(std::int64_t, ServiceReply&),
                  ServiceReply& reply) {
  const Member found = member(object, name);
  if (!found) return;
  if (const auto number = integer_of(*found)) return take(*number, reply);
  ignore_field(name, std::string(name) + " " + show(*found) + " must be an integer", reply);
}

// The optional fields with texts.
void take_text(const JsonValue& object, std::string_view name, void (*take)(std::string_view, ServiceReply&),
               ServiceReply& reply) {
  const Member found = member(object, name);
  if (!found) return;
  if (found->is(JsonKind::string)) return take(found->string(), reply);
  ignore_field(name, std::string(name) + " " + show(*found) + " must be a string", reply);
}

void take_optional(const JsonValue& object, ServiceReply& reply) {
  take_text(object, "tenant_key", take_tenant_key, reply);
  take_text(object, "failure_policy", take_failure_policy, reply);
  take_integer(object, "failure_code", take_failure_code, reply);
  take_integer(object, "cache_max_age_seconds", take_max_age, reply);
  if (const Member found = member(object, "cache_no_store")) {
    if (found->is(JsonKind::boolean)) {
      reply.no_store = found->boolean();
    } else {
      ignore_field("cache_no_store", "cache_no_store " + show(*found) + " must be true or false", reply);
    }
  }
  if (const Member found = member(object, "backend_url")) {
    take_backend_url(found->is(JsonKind::string) ? found->string() : kUnusableUrl, reply);
  }
}

// ---- Protobuf: the field numbers of limits.proto ----

constexpr std::uint32_t kAverage = 1;
constexpr std::uint32_t kBurst = 2;
constexpr std::uint32_t kPeriod = 3;
constexpr std::uint32_t kMaxAge = 4;
constexpr std::uint32_t kNoStore = 5;
constexpr std::uint32_t kTenantKey = 6;
constexpr std::uint32_t kFailurePolicy = 7;
constexpr std::uint32_t kFailureCode = 8;
constexpr std::uint32_t kBackendUrl = 9;

// A message as sent; of a repeated field the last one counts.
struct Message {
  std::int64_t average = 0;
  std::int64_t burst = 0;
  std::string_view period;
  std::int64_t max_age = 0;
  bool no_store = false;
  std::string_view tenant_key;
  std::int32_t failure_policy = 0;
  std::int32_t failure_code = 0;
  std::string_view backend_url;
};

void take_varint(std::uint32_t number, std::uint64_t value, Message& message) {
  switch (number) {
    case kAverage:
      message.average = static_cast<std::int64_t>(value);
      return;
    case kBurst:
      message.burst = static_cast<std::int64_t>(value);
      return;
    case kMaxAge:
      message.max_age = static_cast<std::int64_t>(value);
      return;
    case kNoStore:
      message.no_store = value != 0;
      return;
    case kFailurePolicy:
      message.failure_policy = static_cast<std::int32_t>(value);  // protobuf keeps the low 32 bits, too
      return;
    case kFailureCode:
      message.failure_code = static_cast<std::int32_t>(value);
      return;
    default:
      return;
  }
}

void take_bytes(std::uint32_t number, std::string_view bytes, Message& message) {
  switch (number) {
    case kPeriod:
      message.period = bytes;
      return;
    case kTenantKey:
      message.tenant_key = bytes;
      return;
    case kBackendUrl:
      message.backend_url = bytes;
      return;
    default:
      return;
  }
}

// Returns false if the bytes are no message. Unknown fields, and known ones of another type, are skipped.
bool read_message(std::string_view bytes, Message& message) {
  ProtobufReader reader(bytes);
  for (ProtobufReader::Field field; reader.next(field);) {
    if (field.kind == ProtobufReader::Kind::varint) take_varint(field.number, field.varint, message);
    if (field.kind == ProtobufReader::Kind::bytes) take_bytes(field.number, field.bytes, message);
  }
  return !reader.is_malformed();
}

void take_failure_policy_number(std::int32_t number, ServiceReply& reply) {
  if (number >= 0 && number <= 3) {
    constexpr std::string_view kWords[] = {"", "passthrough", "failclosed", "inmemoryfallback"};
    return take_failure_policy(kWords[number], reply);
  }
  ignore_field("failure_policy", "failure_policy " + std::to_string(number) + " must be 0 to 3", reply);
}

}  // namespace

Result<ServiceReply> parse_json_reply(std::string_view text, Duration window_max) {
  if (const auto good = check_size(text); !good) return good.error();
  JsonReader reader;
  const Result<JsonValue> root = reader.read(text);
  if (!root) return bad_reply("bad_body", root.error().detail);
  if (!root->is(JsonKind::object)) {
    return bad_reply("bad_body", "the reply must be a JSON object and is " + std::string(name_of(root->kind())));
  }
  const auto average = required_integer(*root, "average", "bad_average");
  if (!average) return average.error();
  const auto burst = required_integer(*root, "burst", "bad_burst");
  if (!burst) return burst.error();
  const auto period = required_period(*root);
  if (!period) return period.error();
  ServiceReply reply;
  if (const auto good = take_numbers(*average, *burst, *period, window_max, reply.answer); !good) return good.error();
  take_optional(*root, reply);
  return reply;
}

Result<ServiceReply> parse_protobuf_reply(std::string_view bytes, Duration window_max) {
  if (const auto good = check_size(bytes); !good) return good.error();
  Message message;
  if (!read_message(bytes, message)) return bad_reply("bad_body", "the reply is not a protobuf message");
  if (message.average < 0) {
    return bad_reply("bad_average", "average " + std::to_string(message.average) + " must be 0 or more");
  }
  if (message.burst == 0) return bad_reply("bad_burst", "burst is missing");
  if (message.period.empty()) return bad_reply("bad_period", "period is missing");
  const Result<Duration> period = parse_duration(message.period);
  if (!period) return bad_reply("bad_period", "period: " + period.error().detail);
  ServiceReply reply;
  if (const auto good = take_numbers(message.average, message.burst, *period, window_max, reply.answer); !good) {
    return good.error();
  }
  take_tenant_key(message.tenant_key, reply);
  take_failure_policy_number(message.failure_policy, reply);
  take_failure_code(message.failure_code, reply);
  take_max_age(message.max_age, reply);
  reply.no_store = message.no_store;
  take_backend_url(message.backend_url, reply);
  return reply;
}

}  // namespace weir::external
