// What the edge proxy counts. Like LoopMetrics: one loop writes, any thread may read. Labels are names of routes and
// backends, so their number is bounded by the configuration.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/observe/counter.h"

namespace weir {

// Why there was no response from a backend.
enum class UpstreamError : unsigned char {
  connect,     // no connection: refused, unreachable, no such name, TLS handshake
  reset,       // the connection ended before the response head
  timeout,     // no response head in time
  bad_answer,  // not HTTP, or cut off
  overloaded,  // no connection became free in time
  refused,     // its URL is not allowed
  none_left,   // all backends are ejected
};
inline constexpr std::size_t kUpstreamErrors = 7;
std::string_view print(UpstreamError error) noexcept;

struct ProxyRouteCounters {
  std::string route;                // empty: requests without a route
  std::array<Counter, 5> by_class;  // 1xx to 5xx
  Histogram upstream_seconds;       // from the call to the response head
  std::array<Counter, kUpstreamErrors> errors;

  // A status of 600 or more counts as 5xx (RFC 9110 §15).
  void responded(int status) noexcept { by_class[static_cast<std::size_t>(std::clamp(status / 100 - 1, 0, 4))].add(); }
  void failed(UpstreamError error) noexcept { errors[static_cast<std::size_t>(error)].add(); }
};

class ProxyMetrics {
 public:
  // Returns the counters of one route, valid as long as the metrics. Only the loop may call it.
  ProxyRouteCounters& route(std::string_view name);

  Counter retries;
  Counter bytes_in;         // request bodies and tunnels, from clients
  Counter bytes_out;        // response bodies and tunnels, to clients
  Counter active;           // requests in progress
  Counter refused_headers;  // connections closed because they did not begin with a PROXY header from a trusted peer

  // For /metrics.
  void visit(const std::function<void(const ProxyRouteCounters&)>& visit) const;

 private:
  mutable std::mutex growing_;
  std::map<std::string, std::unique_ptr<ProxyRouteCounters>, std::less<>> routes_;
};

// What is known about one backend.
struct BackendState {
  std::string backend;  // its URL
  bool up = true;
  std::uint64_t responses = 0;
  std::uint64_t failed = 0;                                  // calls without a response
  std::array<std::uint64_t, Histogram::kBuckets> seconds{};  // from the call to the response head, as in Histogram
};

// Appends the proxy's series in Prometheus text format. Writes nothing if no route was ever counted: there is no proxy.
void write_proxy_metrics(const std::vector<const ProxyMetrics*>& loops, const std::vector<BackendState>& backends,
                         std::string& out);

}  // namespace weir
