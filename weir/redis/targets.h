// What servers say about servers: hosts and ports in replies, and replies value by value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/net/resolve.h"
#include "weir/wire/resp.h"

namespace weir::redis {

// The host and the port as servers give them in replies. An empty host means the one that was asked: a server that
// does not know its own address says so. Error: a port or a host that cannot be one.
Result<Target> make_target(std::string_view host, std::int64_t port, const Target& asked);
Result<Target> make_target(std::string_view host, std::string_view port, const Target& asked);

// "host:port" as in MOVED: everything before the last ':' is the host, brackets or not.
Result<Target> parse_target(std::string_view text, const Target& asked);

using Values = std::span<const resp::Reply::Value>;

// The values of a reply's aggregate, one by one, each with what is below it.
class Elements {
 public:
  // REQUIRES: `values` begins with an aggregate and holds all of it.
  explicit Elements(Values values) noexcept : rest_(values.subspan(1, values.front().skip - 1)) {}

  // The next value with everything below it; empty when there is none.
  Values next() noexcept {
    if (rest_.empty()) return {};
    const Values value = rest_.first(rest_.front().skip);
    rest_ = rest_.subspan(value.size());
    return value;
  }

 private:
  Values rest_;
};

inline bool is_aggregate(const resp::Reply::Value& value) noexcept {
  return value.type == resp::Type::array || value.type == resp::Type::push || value.type == resp::Type::set ||
         value.type == resp::Type::map;
}

inline bool is_text(const resp::Reply::Value& value) noexcept {
  return value.type == resp::Type::bulk || value.type == resp::Type::simple || value.type == resp::Type::verbatim;
}

}  // namespace weir::redis
