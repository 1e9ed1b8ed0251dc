// Everything in the configuration except limits: plain values with all defaults filled in. Each struct holds one
// section of the file; the table in fields.h maps rows to members. Services that decide limits are in the policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/policy/block_rule.h"
#include "weir/policy/forwarding.h"

namespace weir::config {

struct Tls {
  std::string cert;
  std::string key;
  // Only the first entry's values are used; they apply to the whole listener.
  std::string client_ca;
  bool require_client = true;
  bool only_tls13 = false;
};

struct Listener {
  std::string address;              // "127.0.0.1:8080" or "unix:/run/weir/weir.sock"
  std::vector<std::string> speak;   // of http, grpc, resp, admin, proxy
  std::vector<std::string> tokens;  // empty: the decision API is open
  std::string write_token;          // empty: refund and reset need no more than a check does
  std::string password;
  std::string write_password;
  std::vector<Tls> tls;
  bool proxy_protocol = false;
  Duration idle_timeout{};        // zero: forever
  Duration max_connection_age{};  // zero: no bound
};

struct Access {
  std::vector<std::string> trusted_proxies;
  int ipv6_prefix = 64;
  BlockRule block;
};

// In the order of the table's choices.
enum class StoreKind : unsigned char { memory, redis };

struct Memory {
  std::int64_t max_buckets = 0;
  bool names = false;
  Duration cleanup{};
};

struct State {
  std::string live;
  std::string snapshot;
  Duration every{};
};

struct RedisTls {
  bool enabled = false;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string server_name;
};

struct Redis {
  std::vector<std::string> endpoints;
  std::string mode;  // single, replication, sentinel or cluster
  std::string username;
  std::string password;
  std::int64_t db = 0;
  std::string master_name;
  RedisTls tls;
  std::int64_t pool_size = 0;
  Duration timeout{};
  std::string key_prefix;
  std::string hash_tag;
  std::int64_t fallback_buckets = 0;
  std::int64_t wait_replicas = 0;
  std::int64_t share = 1;  // servers that divide a limit's numbers while Redis is down
};

struct Proxy {
  std::int64_t header_max = 0;
  std::int64_t request_line_max = 0;
  std::int64_t body_max = 0;  // 0: no bound
  Duration header_timeout{};
  Duration body_timeout{};
  Duration connect_timeout{};
  Duration response_timeout{};
  Duration stream_idle_timeout{};
  Duration idle_timeout{};
  std::int64_t max_concurrent_requests = 0;
  std::int64_t backend_connections = 0;
};

struct Headers {
  std::vector<std::string> ratelimit;  // of x-ratelimit, ietf
  std::string reset;                   // epoch or delta
};

struct Admin {
  std::string read_token;
  std::string write_token;
};

struct Jwt {
  std::string keys;  // the path of a JWK set; empty: none
  std::string secret;
  std::string issuer;
  std::string audience;
  Duration leeway{};
  std::vector<std::string> algorithms;  // of RS256, ES256, EdDSA, HS256
  std::string header;                   // where the token is; empty: the bearer token
  std::string cookie;                   // or there
  bool require_exp = true;
};

// In the order of the table's choices.
enum class AccessLog : unsigned char { off, common, json };

struct Log {
  std::string level;
  std::string format;
  AccessLog access = AccessLog::off;
  std::string access_file;  // empty: standard output
};

struct Settings {
  std::vector<Listener> listen;
  std::int64_t threads = 0;  // 0: one per core
  StoreKind store = StoreKind::memory;
  Memory memory;
  State state;
  std::string hash_key;
  Redis redis;
  Redis cache_redis;  // of services' answers
  bool has_cache_redis = false;
  FailurePolicy failure_policy = FailurePolicy::pass_through;
  int failure_code = 0;
  Access access;
  Proxy proxy;
  Forwarding forwarding;  // the defaults for all routes
  Duration drain_timeout{};
  Duration drain_delay{};
  bool merge_domains = false;
  bool envoy_headers = false;
  bool envoy_metadata = false;
  Headers headers;
  Jwt jwt;
  Admin admin;
  Log log;
};

}  // namespace weir::config
