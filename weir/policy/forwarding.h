// Where the edge proxy sends requests, and how: of one route, or of the whole configuration. Values as they were
// written; proxy/ makes connections of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/time.h"

namespace weir {

// How a backend's certificate is verified and what we show it.
struct BackendTls {
  std::string ca_file;    // empty: the system's authorities
  std::string cert_file;  // empty: none
  std::string key_file;
  std::string server_name;  // empty: the URL's host

  friend bool operator==(const BackendTls&, const BackendTls&) = default;
};

// What is absent is the whole configuration's.
struct Forwarding {
  std::vector<std::string> backends;  // URLs, checked (net/http_url.h)
  std::optional<BackendTls> tls;
  std::optional<Duration> response_timeout;
  std::optional<Duration> stream_idle_timeout;
  std::optional<std::int64_t> body_max;  // 0: no bound
  bool backend_host = false;             // Host is the URL's, not the client's
  std::optional<bool> preflight_passes;  // a CORS preflight takes no token
  std::vector<std::pair<std::string, std::string>> error_headers;
};

}  // namespace weir
