// Where a Redis server is, as another one or the configuration names it: an IP address or a host name, and a port.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/wire/resp.h"

namespace weir::redis {

struct Node {
  std::string host;  // never empty, at most bounds::redis_host_bytes_max
  std::uint16_t port = 0;

  // "127.0.0.1:6379", "[::1]:6379", "redis-1.example:6379".
  std::string print() const;

  friend auto operator<=>(const Node&, const Node&) = default;
};

// The host and the port as servers give them in replies. An empty host means the one that was asked: a server that
// does not know its own address says so. Error: a port or a host that cannot be one.
Result<Node> make_node(std::string_view host, std::string_view port, const Node& asked);
Result<Node> make_node(std::string_view host, std::int64_t port, const Node& asked);

// "host:port" as in MOVED: everything before the last ':' is the host, brackets or not.
Result<Node> parse_node(std::string_view text, const Node& asked);

// The values of a reply's aggregate, one by one, each with what is below it.
class Elements {
 public:
  // REQUIRES: `values` begins with an aggregate and holds all of it.
  explicit Elements(std::span<const resp::Reply::Value> values) noexcept
      : rest_(values.subspan(1, values.front().skip - 1)) {}

  // The next value with everything below it; empty when there is none.
  std::span<const resp::Reply::Value> next() noexcept {
    if (rest_.empty()) return {};
    const auto value = rest_.first(rest_.front().skip);
    rest_ = rest_.subspan(value.size());
    return value;
  }

 private:
  std::span<const resp::Reply::Value> rest_;
};

inline bool is_aggregate(const resp::Reply::Value& value) noexcept {
  return value.type == resp::Type::array || value.type == resp::Type::push || value.type == resp::Type::set ||
         value.type == resp::Type::map;
}

inline bool is_text(const resp::Reply::Value& value) noexcept {
  return value.type == resp::Type::bulk || value.type == resp::Type::simple || value.type == resp::Type::verbatim;
}

}  // namespace weir::redis
