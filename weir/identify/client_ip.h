// Who is at the other end, behind any number of proxies. A header can be forged by anybody, so it is believed only as
// far as it was written by proxies that the configuration trusts: reading from the right, each address was seen by the
// hop behind it, and the first one that is not a trusted proxy is the client.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/identify/ip.h"
#include "weir/identify/prefix_map.h"

namespace weir {

// `access.trusted_proxies`. Immutable.
class TrustedProxies {
 public:
  TrustedProxies() = default;  // trusts nobody
  // A prefix given twice counts once.
  static Result<TrustedProxies> make(std::vector<IpPrefix> prefixes);

  bool trusts(const IpAddress& address) const noexcept { return prefixes_.find(address) != nullptr; }

 private:
  PrefixMap<char> prefixes_;
};

// One hop of X-Forwarded-For: an address, "[v6]", "v4:port" or "[v6]:port"; spaces around it are skipped. Nothing for
// anything else, such as "unknown".
std::optional<IpAddress> parse_hop(std::string_view text) noexcept;

// The client of a request that came from `peer`. `forwarded_for` are the X-Forwarded-For lines in their order,
// `real_ip` is X-Real-IP, which counts when there are none. From a peer that is not trusted both mean nothing. A hop
// that cannot be read ends the search: the last good one before it is the client. If every hop is a trusted proxy, the
// leftmost is the client. Linear in the lines.
IpAddress client_ip(const IpAddress& peer, std::span<const std::string_view> forwarded_for, std::string_view real_ip,
                    const TrustedProxies& trusted) noexcept;

}  // namespace weir
