#include "weir/observe/proxy_metrics.h"

#include "weir/base/text.h"

namespace weir {
namespace {

struct RouteSums {
  std::array<std::uint64_t, 5> by_class{};
  std::array<std::uint64_t, Histogram::kBuckets> seconds{};
  std::uint64_t sum_ns = 0;
  std::array<std::uint64_t, kUpstreamErrors> errors{};

  void add(const ProxyRouteCounters& counters) {
    for (std::size_t i = 0; i < by_class.size(); ++i) by_class[i] += counters.by_class[i].value();
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += counters.upstream_seconds.count(i);
    sum_ns += counters.upstream_seconds.sum_ns();
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += counters.errors[i].value();
  }
};

void begin_series(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out.append("# HELP ").append(name).append(" ").append(help);
  out.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void add_sample(std::string& out, std::string_view name, const std::string& labels, std::string_view value) {
  out.append(name).append(labels).append(" ").append(value).append("\n");
}

// A label's value is in quotes; URLs can contain some.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

void write_routes(const std::map<std::string, RouteSums>& routes, std::string& out) {
  begin_series(out, "weir_proxy_requests_total", "counter", "Proxied requests by route and class of status.");
  for (const auto& [route, sums] : routes) {
    for (std::size_t i = 0; i < sums.by_class.size(); ++i) {
      add_sample(out, "weir_proxy_requests_total",
                 "{route=\"" + route + "\",status_class=\"" + std::to_string(i + 1) + "xx\"}",
                 std::to_string(sums.by_class[i]));
    }
  }
  begin_series(out, "weir_proxy_upstream_seconds", "histogram", "From the call of a backend to its response head.");
  for (const auto& [route, sums] : routes) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
      total += sums.seconds[i];
      const bool last = i + 1 == Histogram::kBuckets;
      const std::string bound = last ? "+Inf" : print_seconds(Histogram::upper_bound(i));
      add_sample(out, "weir_proxy_upstream_seconds_bucket", "{route=\"" + route + "\",le=\"" + bound + "\"}",
                 std::to_string(total));
    }
    const std::string labels = "{route=\"" + route + "\"}";
    add_sample(out, "weir_proxy_upstream_seconds_sum", labels,
               print_seconds(Duration{static_cast<std::int64_t>(sums.sum_ns)}));
    add_sample(out, "weir_proxy_upstream_seconds_count", labels, std::to_string(total));
  }
  begin_series(out, "weir_proxy_upstream_errors_total", "counter", "Backends that gave no response, by kind.");
  for (const auto& [route, sums] : routes) {
    for (std::size_t i = 0; i < kUpstreamErrors; ++i) {
      const std::string kind(print(static_cast<UpstreamError>(i)));
      add_sample(out, "weir_proxy_upstream_errors_total", "{route=\"" + route + "\",kind=\"" + kind + "\"}",
                 std::to_string(sums.errors[i]));
    }
  }
}

}  // namespace

std::string_view print(UpstreamError error) noexcept {
  switch (error) {
    case UpstreamError::connect:
      return "connect";
    case UpstreamError::reset:
      return "reset";
    case UpstreamError::timeout:
      return "timeout";
    case UpstreamError::bad_answer:
      return "bad_answer";
    case UpstreamError::overloaded:
      return "overloaded";
    case UpstreamError::refused:
      return "refused";
    case UpstreamError::none_left:
      return "none_left";
  }
  return "";
}

ProxyRouteCounters& ProxyMetrics::route(std::string_view name) {
  // Only this thread adds routes, so searching needs no lock.
  if (const auto found = routes_.find(name); found != routes_.end()) return *found->second;
  auto counters = std::make_unique<ProxyRouteCounters>();
  counters->route = name;
  const std::lock_guard lock(growing_);
  return *routes_.emplace(name, std::move(counters)).first->second;
}

void ProxyMetrics::visit(const std::function<void(const ProxyRouteCounters&)>& visit) const {
  const std::lock_guard lock(growing_);
  for (const auto& [name, counters] : routes_) visit(*counters);
}

void write_proxy_metrics(const std::vector<const ProxyMetrics*>& loops, const std::vector<BackendState>& backends,
                         std::string& out) {
  std::map<std::string, RouteSums> routes;
  std::uint64_t retries = 0;
  std::uint64_t in = 0;
  std::uint64_t sent = 0;
  std::uint64_t active = 0;
  std::uint64_t refused = 0;
  for (const ProxyMetrics* loop : loops) {
    loop->visit([&](const ProxyRouteCounters& counters) { routes[counters.route].add(counters); });
    retries += loop->retries.value();
    in += loop->bytes_in.value();
    sent += loop->bytes_out.value();
    active += loop->active.value();
    refused += loop->refused_headers.value();
  }
  if (routes.empty()) return;
  write_routes(routes, out);
  begin_series(out, "weir_proxy_retries_total", "counter", "Requests sent to another backend.");
  add_sample(out, "weir_proxy_retries_total", "", std::to_string(retries));
  begin_series(out, "weir_proxy_bytes_total", "counter", "Bytes of bodies and tunnels, from clients and to them.");
  add_sample(out, "weir_proxy_bytes_total", "{direction=\"in\"}", std::to_string(in));
  add_sample(out, "weir_proxy_bytes_total", "{direction=\"out\"}", std::to_string(sent));
  begin_series(out, "weir_proxy_active", "gauge", "Requests in progress, tunnels included.");
  add_sample(out, "weir_proxy_active", "", std::to_string(active));
  begin_series(out, "weir_proxy_header_refused_total", "counter",
               "Connections closed because no trusted peer began them with a PROXY header.");
  add_sample(out, "weir_proxy_header_refused_total", "", std::to_string(refused));
  begin_series(out, "weir_backend_up", "gauge", "0 after three failures in a row, until a response.");
  for (const BackendState& one : backends) {
    add_sample(out, "weir_backend_up", "{backend=\"" + label_value(one.backend) + "\"}", one.up ? "1" : "0");
  }
}

}  // namespace weir
