// Where requests go: the backends, timeouts and bounds of each route, ready for use. Built once per loop and
// configuration; a request keeps the one it began with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/log.h"
#include "weir/base/result.h"
#include "weir/config/parse.h"
#include "weir/http/call.h"
#include "weir/net/http_url.h"
#include "weir/observe/proxy_metrics.h"
#include "weir/policy/forwarding.h"
#include "weir/policy/policy.h"
#include "weir/proxy/upstream.h"

namespace weir::proxy {

struct Backend {
  std::string name;  // the URL as written
  http::Origin origin;
  std::string authority;  // for Host
  std::string path;       // goes before the request's; empty or "/v2"
  std::string_view scheme = "http";
  // For requests with Upgrade to an https:// backend: offers only HTTP/1.1, because HTTP/2 has no Upgrade.
  std::shared_ptr<const TlsClient> upgrade_tls = nullptr;

  // True if the backend can take a request with Upgrade; an h2:// backend gets it without the Upgrade.
  bool takes_upgrades() const noexcept { return origin.version == http::HttpVersion::http1 || upgrade_tls != nullptr; }
  // Where a request with Upgrade goes. REQUIRES: takes_upgrades().
  http::Origin upgrade_origin() const;
};

struct Destination {
  std::string route;  // its name; empty: requests without a route
  std::vector<Backend> backends;
  std::shared_ptr<UpstreamGroup> group;
  Duration response_timeout{};
  Duration stream_idle_timeout{};
  std::uint64_t body_max = 0;  // 0: no bound
  bool backend_host = false;
  bool preflight_passes = false;
  std::string error_lines;               // of responses that Weir makes itself
  std::vector<std::string> form_fields;  // "form:email": the body is read for these
  ProxyRouteCounters* counters = nullptr;
};

// TLS settings towards backends, shared by the loops. Thread-safe.
class TlsClients {
 public:
  // Relative paths start at `folder`.
  explicit TlsClients(std::string folder) : folder_(std::move(folder)) {}
  enum class Offer : unsigned char { any_version, http1 };
  // Reads the files again if they have changed.
  Result<std::shared_ptr<const TlsClient>> get(const BackendTls& tls, Offer offer);

 private:
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const TlsClient>> made_;
};

// Makes a backend of a URL. An https:// backend needs `tls`.
Result<Backend> make_backend(const std::string& url, const BackendTls& tls, TlsClients& clients);

class Destinations {
 public:
  // A backend that cannot be used is logged and left out.
  Destinations(const config::Loaded& loaded, Upstreams& upstreams, TlsClients& clients, ProxyMetrics& metrics,
               const std::function<void(LogLevel, std::string_view)>& log);

  // Returns null if no backend can serve the route. If it has no backends, a limits service may name one.
  const Destination* find(const Route* route) const noexcept;
  // The names of the fields that decide about a request: keys of limits, tiers, costs, routes. In lower case.
  const std::vector<std::string>& decisive_headers() const noexcept { return decisive_headers_; }
  // Header lines for responses of requests without a destination.
  const std::string& error_lines() const noexcept { return error_lines_; }
  const Policy& policy() const noexcept { return *policy_; }
  const config::Proxy& limits() const noexcept { return limits_; }
  ProxyRouteCounters& no_route() const noexcept { return no_route_; }

 private:
  std::shared_ptr<const Policy> policy_;
  config::Proxy limits_;
  std::vector<Destination> routes_;  // as in the policy
  Destination rest_;
  std::string error_lines_;
  std::vector<std::string> decisive_headers_;
  ProxyRouteCounters& no_route_;
};

}  // namespace weir::proxy
