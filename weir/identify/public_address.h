// Which addresses are public: globally reachable by IANA's registries of special-purpose addresses (RFC 6890).
#pragma once

#include "weir/identify/ip.h"

namespace weir {

// False for private, loopback, link-local, shared, benchmarking, documentation, multicast, reserved and unspecified
// addresses, and for IPv6 addresses that carry such an IPv4 address: mapped, NAT64, 6to4, Teredo.
bool is_public(const IpAddress& address) noexcept;

}  // namespace weir
