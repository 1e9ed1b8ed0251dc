#include "weir/admin/router.h"

#include <algorithm>

#include "weir/admin/calls.h"

namespace weir::admin {
namespace {

constexpr std::string_view kPlace = "{}";

constexpr std::array<std::string_view, 5> kListing = {"limit", "sort", "prefix", "n", "cursor"};
constexpr std::array<std::string_view, 2> kTop = {"by", "n"};
constexpr std::array<std::string_view, 1> kClient = {"full"};
constexpr std::array<std::string_view, 3> kReset = {"limit", "confirm", "block"};
constexpr std::array<std::string_view, 3> kEvents = {"limit", "allowed", "sample"};
constexpr std::array<std::string_view, 4> kEntry = {"ip", "apikey", "limit", "id"};

constexpr std::array<Route, 27> kRoutes = {{
    {"GET", "/healthz", Permission::none, healthz, {}, true},
    {"GET", "/readyz", Permission::none, readyz, {}, true},
    {"GET", "/startz", Permission::none, startz, {}, true},
    {"GET", "/metrics", Permission::read, metrics, {}, true},
    {"GET", "/ratelimit/stats", Permission::read, stats, {}},
    {"GET", "/ratelimit/clients", Permission::read, list_clients, kListing},
    {"GET", "/ratelimit/clients/{}/{}", Permission::read, show_client, kClient},
    {"GET", "/ratelimit/top", Permission::read, top, kTop},
    {"POST", "/ratelimit/reset", Permission::write, reset_in_body, {}},
    {"POST", "/ratelimit/reset/{}", Permission::write, reset_in_path, kReset},
    {"GET", "/ratelimit/adjust", Permission::read, list_adjustments, {}},
    {"PUT", "/ratelimit/adjust", Permission::write, adjust_in_body, {}},
    {"POST", "/ratelimit/adjust", Permission::write, adjust_in_body, {}},
    {"DELETE", "/ratelimit/adjust", Permission::write, unadjust_in_body, {}},
    {"PUT", "/ratelimit/adjust/{}/{}", Permission::write, adjust_in_path, {}},
    {"DELETE", "/ratelimit/adjust/{}/{}", Permission::write, unadjust_in_path, {}},
    {"GET", "/ratelimit/access/{}", Permission::read, list_entries, {}},
    {"POST", "/ratelimit/access/{}", Permission::write, add_entry, {}},
    {"DELETE", "/ratelimit/access/{}", Permission::write, remove_entry, kEntry},
    {"DELETE", "/ratelimit/external/{}/{}", Permission::write, forget_answer, {}},
    {"GET", "/ratelimit/config", Permission::read, show_config, {}},
    {"PUT", "/ratelimit/config", Permission::write, change_config, {}},
    {"POST", "/ratelimit/reload", Permission::write, reload, {}},
    {"GET", "/ratelimit/events", Permission::read, watch_events, kEvents},
    {"GET", "/ratelimit/live", Permission::read, watch_numbers, {}},
    {"GET", "/", Permission::page, dashboard_page, {}},
    {"GET", "/assets/{}", Permission::page, dashboard_asset, {}},
}};

// Returns whether the path matches the pattern, and fills `found.parts`.
bool matches(std::string_view pattern, std::string_view path, RouteMatch& found) {
  std::size_t place = 0;
  while (!pattern.empty() || !path.empty()) {
    if (!pattern.starts_with('/') || !path.starts_with('/')) return false;
    const std::string_view wanted = pattern.substr(1, pattern.find('/', 1) - 1);
    pattern.remove_prefix(1 + wanted.size());
    const bool rest = wanted == kPlace && pattern.empty();
    const std::string_view given = rest ? path.substr(1) : path.substr(1, path.find('/', 1) - 1);
    path.remove_prefix(1 + given.size());
    if (wanted != kPlace) {
      if (wanted != given) return false;
      continue;
    }
    if (given.empty()) return false;
    auto decoded = unescaped(given, false);
    found.bad_escape |= !decoded;
    found.parts[place++] = std::move(decoded).value_or("");
  }
  return true;
}

}  // namespace

RouteMatch find_route(std::string_view method, std::string_view path) {
  if (method == "HEAD") method = "GET";
  RouteMatch found;
  for (const Route& route : kRoutes) {
    RouteMatch trial;
    if (!matches(route.pattern, path, trial)) continue;
    found.allow.append(found.allow.empty() ? "" : ", ").append(route.method);
    if (route.method == "GET") found.allow += ", HEAD";
    if (route.method != method) continue;
    found.route = &route;
    found.parts = std::move(trial.parts);
    found.bad_escape = trial.bad_escape;
  }
  if (!found.allow.empty()) found.allow += ", OPTIONS";
  return found;
}

}  // namespace weir::admin
