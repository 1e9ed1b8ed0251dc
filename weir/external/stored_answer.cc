#include "weir/external/stored_answer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/external/reply.h"
#include "weir/wire/json.h"

namespace weir::external {
namespace {

using Milliseconds = std::chrono::milliseconds;

Error damaged(std::string_view rule) {
  return {Fault::invalid, "stored answer: " + std::string(rule)};
}

// An instant of the wall clock on our own timeline: not after now, not before its beginning.
Time to_time(Wall wall, Now now) {
  const Duration age = std::clamp<Duration>(now.wall - wall, Duration::zero(), now.time.time_since_epoch());
  return now.time - age;
}

// Milliseconds since 1970, up to 2100: no sum overflows.
std::optional<Wall> to_wall(std::int64_t milliseconds) {
  constexpr Milliseconds kLatest = std::chrono::seconds{4'102'444'800};
  if (milliseconds < 0 || milliseconds > kLatest.count()) return std::nullopt;
  return Wall{Milliseconds{milliseconds}};
}

bool is_text(const JsonValue& object, std::string_view name, std::string_view text) {
  const auto found = object.find(name);
  return found && found->is(JsonKind::string) && found->string() == text;
}

}  // namespace

std::string print_stored_answer(std::string_view limit, const KeptAnswer& answer, Now now) {
  std::string out;
  JsonWriter writer(out);
  const Wall answered = now.wall - std::max(now.time - answer.answered, Duration::zero());
  writer.begin_object().key("service").string(answer.service).key("limit").string(limit);
  writer.key("answered").number(std::chrono::floor<Milliseconds>(answered.time_since_epoch()).count());
  writer.key("keep_stale").boolean(answer.stale_until > answer.fresh_until);
  const bool limited = answer.numbers.has_value();
  writer.key("average").number(limited ? answer.numbers->count() : 0);
  writer.key("burst").number(limited ? answer.numbers->burst() : 1);
  writer.key("period").string(limited ? print_duration(answer.numbers->period()) : "1s");
  if (!answer.tenant_key.empty()) writer.key("tenant_key").string(answer.tenant_key);
  if (answer.failure_policy) writer.key("failure_policy").string(print(*answer.failure_policy));
  if (answer.failure_code) writer.key("failure_code").number(*answer.failure_code);
  if (!answer.backend_url.empty()) writer.key("backend_url").string(answer.backend_url);
  writer.end_object();
  return out;
}

Result<KeptAnswer> parse_stored_answer(const StoredAnswer& stored, Duration window_max, Now now) {
  Result<ServiceReply> reply = parse_json_reply(stored.text, window_max);
  if (!reply) return damaged(reply.error().detail);
  if (!reply->ignored.empty()) return damaged(reply->ignored.front().detail);
  JsonReader reader;
  const Result<JsonValue> root = reader.read(stored.text);
  if (!root) return damaged(root.error().detail);
  if (!is_text(*root, "service", stored.service)) return damaged("it is of another service");
  if (!is_text(*root, "limit", stored.limit)) return damaged("it is of another limit");
  const auto answered = root->find("answered");
  const auto integer = answered && answered->is(JsonKind::number) ? answered->integer() : std::nullopt;
  const auto wall = integer ? to_wall(*integer) : std::nullopt;
  if (!wall) return damaged("answered must be milliseconds since 1970");
  const auto keep_stale = root->find("keep_stale");
  if (!keep_stale || !keep_stale->is(JsonKind::boolean)) return damaged("keep_stale must be true or false");

  KeptAnswer answer;
  static_cast<ServiceAnswer&>(answer) = std::move(reply->answer);
  answer.service = stored.service;
  answer.answered = to_time(*wall, now);
  answer.shared = true;
  const Duration left = std::clamp(stored.left, Duration::zero(), bounds::service_ttl_max + bounds::stale_time);
  if (stored.stale) {
    answer.fresh_until = now.time;
    answer.stale_until = now.time + left;
  } else {
    answer.fresh_until = now.time + std::min(left, bounds::service_ttl_max);
    answer.stale_until = answer.fresh_until + (keep_stale->boolean() ? bounds::stale_time : Duration::zero());
  }
  return answer;
}

}  // namespace weir::external
