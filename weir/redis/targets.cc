#include "weir/redis/targets.h"

#include <charconv>
#include <limits>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::redis {

Result<Target> make_target(std::string_view host, std::int64_t port, const Target& asked) {
  if (port < 1 || port > std::numeric_limits<std::uint16_t>::max()) {
    return Error{Fault::invalid, "port " + std::to_string(port) + " of a Redis server must be 1 to 65535"};
  }
  if (host.empty()) host = asked.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto fits = [](char c) { return c > ' ' && c < '\x7f' && c != '[' && c != ']' && c != '/'; };
  bool good = !host.empty() && host != "?" && host.size() <= bounds::redis_host_bytes_max;
  for (const char c : host) good = good && fits(c);
  if (!good) return Error{Fault::invalid, "host " + quote(host) + " of a Redis server is not a valid host name"};
  return Target{std::string(host), static_cast<std::uint16_t>(port), {}};
}

Result<Target> make_target(std::string_view host, std::string_view port, const Target& asked) {
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size()) {
    return Error{Fault::invalid, "port " + quote(port) + " of a Redis server must be 1 to 65535"};
  }
  return make_target(host, std::int64_t{number}, asked);
}

Result<Target> parse_target(std::string_view text, const Target& asked) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Error{Fault::invalid, "the Redis server " + quote(text) + " has no port"};
  }
  return make_target(text.substr(0, colon), text.substr(colon + 1), asked);
}

}  // namespace weir::redis
