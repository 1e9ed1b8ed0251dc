// Routes: which requests take which limits. The first route that matches wins. Immutable once built.
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

// "/signin", "/users/*/orders", "/api/**": `*` is one segment that is not empty, `**` the rest, which may be nothing.
class PathPattern {
 public:
  PathPattern() = default;  // any path

  // Written normalised or not (identify/path.h): "/a/../b" is "/b". The Error quotes the path and says the rule.
  static Result<PathPattern> parse(std::string_view text, bool ignore_case = false);

  // REQUIRES: `path` is normalised; in lower case if the pattern ignores it.
  bool matches(std::string_view path) const noexcept;
  // No wildcard: it matches text() and nothing else.
  bool is_literal() const noexcept { return literal_; }
  bool ignores_case() const noexcept { return ignores_case_; }
  const std::string& text() const noexcept { return text_; }  // normalised
  // What every path that matches begins with.
  std::string_view prefix() const noexcept;

 private:
  std::string text_ = "/**";
  bool literal_ = false;
  bool ignores_case_ = false;
};

// "example.com", or "*.example.com": one label or more in place of the '*'. "*": any host.
class HostPattern {
 public:
  HostPattern() = default;  // any host, and none

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
  std::vector<std::pair<std::string, std::string>> headers;  // "header:x-beta" and the value one of its lines must have

  // All but the path.
  bool fits_besides_path(const Request& request) const noexcept;
};

struct Route {
  std::string name;
  Match match;
  std::vector<std::uint32_t> limits;  // indexes into the policy's, in the order charged; all have a key
  bool all_limits = false;            // `limits` was not said: every one with a key
  Order order = Order::together;
  Enforcement mode = Enforcement::enforce;
  Count cost = 1;
  std::string cost_header;  // "header:x-cost": it says the cost; empty: `cost` does
  Forwarding forwarding;
};

class RouteTable {
 public:
  RouteTable() = default;
  explicit RouteTable(std::vector<Route> routes);

  // The first that matches, or null. Routes without wildcards in the path are found by it, the others are tried.
  const Route* find(const Request& request) const noexcept;

  bool empty() const noexcept { return routes_.empty(); }
  const std::vector<Route>& all() const noexcept { return routes_; }

 private:
  using Indexes = std::vector<std::uint32_t>;  // ascending

  std::vector<Route> routes_;
  // By path, and by a view of one.
  struct PathHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Literals = std::unordered_map<std::string, Indexes, PathHash, std::equal_to<>>;
  const Route* first_of(const Literals& literals, std::string_view path, const Request& request) const noexcept;

  Literals literal_;
  Literals literal_lower_;  // of routes that ignore the case of the path
  bool ignores_case_ = false;
  // A few bytes decide about most routes: they lie together.
  struct Wild {
    std::uint64_t head;  // the first bytes of the prefix, in a word
    std::uint64_t mask;  // those that it has
    std::string prefix;
    std::uint32_t index;
  };
  std::vector<Wild> wild_;
};

// Of two modes the laxer wins.
constexpr Enforcement laxer(Enforcement a, Enforcement b) noexcept {
  return a > b ? a : b;
}

}  // namespace weir
