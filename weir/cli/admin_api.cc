#include "weir/cli/admin_api.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "weir/base/text.h"
#include "weir/config/values.h"

namespace weir::cli {

AdminApi::AdminApi(const Arguments& arguments, Console& console) : console_(console) {
  Result<Remote> remote = Remote::make(Api::admin, arguments);
  if (!remote) {
    console_.print_error(remote.error().detail);
    exit_ = kUsage;
    return;
  }
  Result<std::unique_ptr<RemoteSession>> session = RemoteSession::make(std::move(*remote));
  if (!session) {
    console_.print_error(session.error().detail);
    exit_ = kFailed;
    return;
  }
  session_ = std::move(*session);
}

void AdminApi::wait_up_to(Duration time) noexcept {
  if (session_ != nullptr) session_->wait_up_to(time);
}

std::optional<AdminAnswer> AdminApi::ask(std::string_view method, std::string_view path, std::string_view json,
                                         bool may_be_missing) {
  if (session_ == nullptr) return {};
  const Result<RemoteReply> reply = session_->ask(method, path, json);
  if (!reply) {
    console_.print_error(reply.error().detail);
    exit_ = kFailed;
    return {};
  }
  std::optional<Answer> answer = Answer::read(reply->content);
  const bool good = reply->status == 200 || (may_be_missing && reply->status == 404);
  if (good && answer && answer->is(Answer::Kind::object)) return AdminAnswer{reply->status, reply->content, *answer};
  console_.print_error(reply->status == 200 ? session_->remote().url() + " does not answer like Weir's admin API"
                                            : sentence_of(*reply));
  exit_ = exit_of(reply->status);
  return {};
}

std::optional<std::vector<KeyedLimit>> limits_keyed_by(std::string_view source, AdminApi& api, Console& console,
                                                       Exit& exit) {
  const std::optional<AdminAnswer> config = api.ask("GET", "/ratelimit/config");
  if (!config) {
    exit = api.exit();
    return {};
  }
  static constexpr std::string_view kLimits = "limits.";
  std::vector<KeyedLimit> limits;
  const auto is_of = [](std::string_view path, const std::string& name, std::string_view field) {
    path.remove_prefix(kLimits.size());
    return path.starts_with(name) && path.substr(name.size()).starts_with(field);
  };
  for (const Answer& setting : config->json["settings"].items()) {
    const std::string_view path = setting["path"].text();
    const std::string& value = setting["value"].text();
    if (!path.starts_with(kLimits) || !path.ends_with(".key")) continue;
    if (value != source && value != "[" + std::string(source) + "]") continue;
    limits.push_back({std::string(path.substr(kLimits.size(), path.size() - kLimits.size() - 4)), false});
  }
  for (const Answer& setting : config->json["settings"].items()) {
    const std::string_view path = setting["path"].text();
    if (!path.starts_with(kLimits)) continue;
    for (KeyedLimit& limit : limits) {
      for (const std::string_view field :
           {".rate", ".count", ".burst", ".schedule", ".average", ".capacity", ".addTokenMs"}) {
        limit.has_rate = limit.has_rate || is_of(path, limit.name, field);
      }
    }
  }
  if (!limits.empty()) return limits;
  console.print_error("no limit is keyed by " + std::string(source) + "; name one with --limit and --id");
  exit = kDenied;
  return {};
}

std::uint64_t active_buckets(const Answer& stats) {
  std::uint64_t active = 0;
  for (const Answer& limit : stats["limits"].items()) active += limit["active"].count();
  return active;
}

std::string readable_seconds(const Answer& seconds) {
  if (!seconds.is(Answer::Kind::number)) return {};
  const double value = seconds.number();
  if (value < 0) return "never";
  if (value == 0) return "0s";
  // Two or three digits are enough for people.
  if (value >= 60) return print_duration(std::chrono::seconds{std::llround(std::min(value, 9e9))});
  if (value < 0.001) return std::to_string(std::llround(value * 1e6)) + "us";
  if (value < 0.9995) return std::to_string(std::llround(value * 1e3)) + "ms";
  const std::int64_t tenths = std::llround(value * 10);
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + "s";
}

std::string readable_instant(const std::string& instant) {
  const Result<Wall> at = config::parse_instant(instant);
  return at ? print_instant(std::chrono::floor<std::chrono::seconds>(*at)) : instant;
}

std::string relative_time(const std::string& instant, Wall now) {
  const Result<Wall> at = config::parse_instant(instant);
  if (!at) return {};
  const bool future = *at > now;
  const auto distance = std::chrono::duration_cast<std::chrono::seconds>(future ? *at - now : now - *at);
  Duration shown = distance;
  // The two largest units say enough.
  if (distance >= std::chrono::hours{1}) shown = std::chrono::floor<std::chrono::minutes>(distance);
  if (distance >= std::chrono::days{1}) shown = std::chrono::floor<std::chrono::hours>(distance);
  if (future) return "in " + print_duration(shown);
  return distance < std::chrono::seconds{1} ? "now" : print_duration(shown) + " ago";
}

std::string limit_cell(const Answer& row) {
  const std::string& name = row["limit"].text();
  return name.empty() ? "(throttle)" : name;
}

std::string readable_rate(const Answer& row) {
  const std::string& count = row["count"].text();
  const std::string& period = row["period"].text();
  if (count.empty() || period.empty()) return {};
  return period == "1s" ? count + "/s" : count + " per " + period;
}

}  // namespace weir::cli
