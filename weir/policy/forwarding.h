// Where and how the edge proxy sends requests: for one route, or for the whole configuration. Values as configured;
// proxy/ makes the connections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/time.h"

namespace weir {

// How to verify a backend's certificate, and which certificate to present.
struct BackendTls {
  std::string ca_file;    // empty: the system's CAs
  std::string cert_file;  // empty: none
  std::string key_file;
  std::string server_name;  // empty: the URL's host

  friend bool operator==(const BackendTls&, const BackendTls&) = default;
};

// For a route, absent values default to those of the whole configuration.
struct Forwarding {
  std::vector<std::string> backends;  // URLs, checked (net/http_url.h)
  std::optional<BackendTls> tls;
  std::optional<Duration> response_timeout;
  std::optional<Duration> stream_idle_timeout;
  std::optional<std::int64_t> body_max;  // 0: no bound
  bool backend_host = false;             // send the URL's Host, not the client's
  std::optional<bool> preflight_passes;  // a CORS preflight takes no token
  std::vector<std::pair<std::string, std::string>> error_headers;
};

}  // namespace weir
