// Parses hosts and ports in replies, and iterates over the values of a reply.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/net/resolve.h"
#include "weir/wire/resp.h"

namespace weir::redis {

// Makes a target from the host and port in a reply. An empty host means the server that was queried, because it does
// not know its own address. Fails for an invalid host or port.
Result<Target> make_target(std::string_view host, std::int64_t port, const Target& asked);
Result<Target> make_target(std::string_view host, std::string_view port, const Target& asked);

// Parses "host:port" as in MOVED: everything before the last ':' is the host, with or without brackets.
Result<Target> parse_target(std::string_view text, const Target& asked);

using Values = std::span<const resp::Reply::Value>;

// Iterates over the elements of an aggregate, each with its nested values.
class Elements {
 public:
  // REQUIRES: `values` starts with an aggregate and contains all of it.
  explicit Elements(Values values) noexcept : rest_(values.subspan(1, values.front().skip - 1)) {}

  // Returns the next element with its nested values; empty at the end.
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
