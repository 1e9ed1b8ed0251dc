// What a client can watch: decisions (GET /ratelimit/events) and numbers (GET /ratelimit/live).
#include "weir/admin/calls.h"
#include "weir/base/text.h"

namespace weir::admin {

Outcome watch_events(AdminShared& shared, const Request& request) {
  constexpr std::size_t kSampleMax = 1'000'000;
  const Parameters& given = request.parameters;
  EventFilter filter;
  filter.limit = given["limit"];
  if (!filter.limit.empty() && shared.reloader.policy()->find(filter.limit) == nullptr) {
    return refuse(404, "unknown_limit", shared.reloader.policy()->unknown_limit(filter.limit).detail);
  }
  const std::string_view allowed = given["allowed"];
  if (given.has("allowed")) {
    if (allowed != "true" && allowed != "false") {
      return refuse(400, "bad_value", "allowed " + quote(allowed) + " must be true or false");
    }
    filter.allowed = allowed == "true";
  }
  const auto sample = given.number("sample", 1, 1, kSampleMax);
  if (!sample) return refuse(400, "bad_value", sample.error().detail);
  filter.sample = static_cast<std::uint32_t>(*sample);
  if (request.method == "HEAD") return Stream{{}, Stream::Kind::decisions};
  auto queue = shared.events.subscribe(std::move(filter));
  if (!queue) return refuse(503, "unavailable", queue.error().detail);
  return Stream{std::move(*queue), Stream::Kind::decisions};
}

Outcome watch_numbers(AdminShared& shared, const Request& request) {
  if (request.method == "HEAD") return Stream{{}, Stream::Kind::numbers};
  auto queue = shared.live.subscribe();
  if (!queue) return refuse(503, "unavailable", queue.error().detail);
  return Stream{std::move(*queue), Stream::Kind::numbers};
}

}  // namespace weir::admin
