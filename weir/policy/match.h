// Routes: which limits apply to which requests. The first route that matches wins. Immutable once built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/result.h"
#include "weir/core/limit.h"
#include "weir/core/query.h"
#include "weir/identify/request.h"
#include "weir/policy/forwarding.h"
#include "weir/policy/named_limit.h"

namespace weir {

// "/signin", "/users/*/orders", "/api/**": `*` is one non-empty segment, `**` is the rest, which may be empty.
class PathPattern {
 public:
  PathPattern() = default;  // any path

  // The text need not be normalized (identify/path.h): "/a/../b" is "/b". The Error quotes the path and names the rule.
  static Result<PathPattern> parse(std::string_view text, bool ignore_case = false);

  // REQUIRES: `path` is normalized, and in lower case if the pattern ignores case.
  bool matches(std::string_view path) const noexcept;
  // True if there is no wildcard: it matches only text().
  bool is_literal() const noexcept { return literal_; }
  bool ignores_case() const noexcept { return ignores_case_; }
  const std::string& text() const noexcept { return text_; }  // normalized
  // Returns a prefix that every matching path has.
  std::string_view prefix() const noexcept;

 private:
  std::string text_ = "/**";
  bool literal_ = false;
  bool ignores_case_ = false;
};

// "example.com", or "*.example.com": one label or more in place of the '*'. "*": any host.
class HostPattern {
 public:
  HostPattern() = default;  // any host, or none

  static Result<HostPattern> parse(std::string_view text);
  // REQUIRES: `host` is in lower case, without a port.
  bool matches(std::string_view host) const noexcept;
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

struct Match {
  PathPattern path;
  std::vector<std::string> methods;  // in upper case; empty: any
  HostPattern host;
  std::vector<std::pair<std::string, std::string>> headers;  // "header:x-beta" and a value that one line must have

  // Matches everything but the path.
  bool fits_besides_path(const Request& request) const noexcept;
};

struct Route {
  std::string name;
  Match match;
  std::vector<std::uint32_t> limits;  // indexes into the policy's limits, in charging order; all have a key
  bool all_limits = false;            // `limits` was not configured: every limit with a key
  Order order = Order::together;
  Enforcement mode = Enforcement::enforce;
  Count cost = 1;
  std::string cost_header;  // "header:x-cost": holds the cost; empty: use `cost`
  Forwarding forwarding;
};

class RouteTable {
 public:
  RouteTable() = default;
  explicit RouteTable(std::vector<Route> routes);

  // Returns the first route that matches, or null. Routes without wildcards are looked up by path, the others are
  // tried.
  const Route* find(const Request& request) const noexcept;

  bool empty() const noexcept { return routes_.empty(); }
  const std::vector<Route>& all() const noexcept { return routes_; }

 private:
  using Indexes = std::vector<std::uint32_t>;  // ascending

  std::vector<Route> routes_;
  // Lookup by path, also by a string_view.
  struct PathHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Literals = std::unordered_map<std::string, Indexes, PathHash, std::equal_to<>>;
  const Route* first_of(const Literals& literals, std::string_view path, const Request& request) const noexcept;

  Literals literal_;
  Literals literal_lower_;  // of routes that ignore the case of the path
  bool ignores_case_ = false;
  // The first bytes of the prefix rule most routes out; they are stored together.
  struct Wild {
    std::uint64_t head;  // the first bytes of the prefix, in a word
    std::uint64_t mask;  // which of those bytes the prefix has
    std::string prefix;
    std::uint32_t index;
  };
  std::vector<Wild> wild_;
};

// Returns the laxer of two modes.
constexpr Enforcement laxer(Enforcement a, Enforcement b) noexcept {
  return a > b ? a : b;
}

}  // namespace weir
