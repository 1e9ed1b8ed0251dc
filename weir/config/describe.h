// Describes a loaded configuration as plain data, for `config check` and `config show`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/config/parse.h"
#include "weir/policy/policy.h"

namespace weir::config {

// One limit as text; fields that do not apply are empty.
struct Described {
  std::string name;
  std::string number;     // "6"
  std::string key;        // "ip", "header:x-tenant-id, path:1"; empty: callers name it
  std::string id;         // "regId:domain"
  std::string numbers;    // "300 per 3h, burst 300", "unlimited", "unlimited, except ids with an override"
  std::string quota;      // "100000 per month (UTC)"
  std::string schedule;   // "mon-fri 09:00-18:00 Europe/London: 50 per 1s, burst 50; ..."
  std::string tiers;      // "header:x-plan; pro: 100 per 1s, burst 500; enterprise: unlimited"
  std::string mode;       // "enforce"
  std::string overrides;  // "2"
};

Described describe(const NamedLimit& limit);

// In the order the limits were written.
std::vector<Described> describe(const Policy& policy);

// One route as text.
struct DescribedRoute {
  std::string name;
  std::string match;    // "POST *.example.com/signin, x-beta: 1"
  std::string limits;   // "session, login-email", "none", "every limit with a key"
  std::string charge;   // "together", "in-order"
  std::string mode;     // "enforce"
  std::string cost;     // "1", "header:x-cost"
  std::string backend;  // "http://127.0.0.1:3000"; empty: none
};

DescribedRoute describe(const Route& route, const Policy& policy);

// In the order they are tried.
std::vector<DescribedRoute> describe_routes(const Policy& policy);

// "300 per 3h, burst 300"; "blocked", "unlimited", or numbers and quota.
std::string print(const Limit& limit);
std::string print(const Override& value, const NamedLimit& limit);

// Returns the id, or "(hidden)" if the limit's ids are hashed or contain API keys.
std::string shown_id(const NamedLimit& limit, std::string_view id);

// The effective configuration with where each value came from, secrets hidden: Loaded::origins, and overrides. Returns
// at most `overrides_max` overrides, because there may be millions.
std::vector<Setting> in_force(const Loaded& loaded, std::size_t overrides_max = SIZE_MAX);

// The same as text, one value per line: `redis.mode: single  # default`.
std::string show(const Loaded& loaded);

}  // namespace weir::config
