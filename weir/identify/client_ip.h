// Finds the client behind any number of proxies. Clients can forge headers, so only what trusted proxies wrote counts.
// Each proxy appends the address it saw: reading from the right, the first one that is not a trusted proxy is the
// client.
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
  TrustedProxies() = default;  // trusts no peer
  // Accepts repeated prefixes.
  static Result<TrustedProxies> make(std::vector<IpPrefix> prefixes, bool unix_peers = false);

  bool trusts(const IpAddress& address) const noexcept { return prefixes_.find(address) != nullptr; }
  // Peers on UNIX sockets.
  bool trusts_unix() const noexcept { return unix_; }

 private:
  PrefixMap<char> prefixes_;
  bool unix_ = false;
};

// Used in place of the address of a peer on a UNIX socket.
inline constexpr std::string_view kUnixPeer = "unix";

// Parses one hop of X-Forwarded-For: an address, "[v6]", "v4:port" or "[v6]:port", with optional spaces. Returns
// nullopt for anything else, such as "unknown".
std::optional<IpAddress> parse_hop(std::string_view text) noexcept;

// Returns the client of a request from `peer`. `forwarded_for` are the X-Forwarded-For lines in order; `real_ip` is
// X-Real-IP, used if there are none. Both are ignored if the peer is not trusted. An unreadable hop ends the search:
// the last valid one before it is the client. If every hop is a trusted proxy, the leftmost is the client. Linear in
// the lines.
IpAddress client_ip(const IpAddress& peer, std::span<const std::string_view> forwarded_for, std::string_view real_ip,
                    const TrustedProxies& trusted) noexcept;

// The same for a trusted peer on a UNIX socket. Returns nullopt if neither header names an address.
std::optional<IpAddress> client_behind_unix(std::span<const std::string_view> forwarded_for, std::string_view real_ip,
                                            const TrustedProxies& trusted) noexcept;

}  // namespace weir
