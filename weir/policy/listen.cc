#include "weir/policy/listen.h"

#include <sys/un.h>

#include <map>

#include "weir/base/text.h"
#include "weir/identify/ip.h"

namespace weir::policy {

Result<std::string> canonical_address(std::string_view text) {
  const auto bad = [&](std::string_view rule) {
    return Error{Fault::invalid, "address " + quote(text) + " " + std::string(rule)};
  };
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) {
    const std::size_t size = text.size() - kUnix.size();
    constexpr std::size_t kPathMax = sizeof(sockaddr_un::sun_path) - 1;
    if (size == 0) return bad("has no path after unix:");
    if (size > kPathMax) return bad("has a path longer than " + std::to_string(kPathMax) + " bytes");
    return std::string(text);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("has no port: write host:port or unix:/path");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("is ambiguous: write an IPv6 address in brackets, [::1]:8080");
  }
  const Result<std::int64_t> port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) return bad("needs a port from 0 to 65535");
  const Result<IpAddress> ip = IpAddress::parse(host == "localhost" ? "127.0.0.1" : host);
  if (!ip) return bad("needs an IP address before the port");
  return (ip->is_v4() ? ip->print() : "[" + ip->print() + "]") + ":" + std::to_string(*port);
}

void check_addresses(const Document& document, NodeId root, Complaints& complaints) {
  std::map<std::string, NodeId> seen;
  for (const NodeId item : document.children(document.find(root, "listen"))) {
    const NodeId address = document.find(item, "address");
    if (address == kNoNode || document.node(address).refused || document.node(address).kind != NodeKind::scalar) {
      continue;
    }
    const Result<std::string> place = canonical_address(document.value(address));
    if (!place) {
      complaints.add(document.mark(address), place.error().detail);
      continue;
    }
    if (place->ends_with(":0")) continue;
    const auto [first, is_new] = seen.emplace(*place, address);
    if (!is_new) {
      complaints.add(document.mark(address), "address " + quote(document.value(address)) +
                                                 " is already listened on at " +
                                                 document.where(document.mark(first->second)));
    }
  }
}

}  // namespace weir::policy
