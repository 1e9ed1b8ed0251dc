// The backend that a limits service names for one request (Answer::backend_url), if it may be used.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/net/socket.h"
#include "weir/proxy/destination.h"

namespace weir::proxy {

// Only http and https, and a host that is public or one of `allowed_hosts` (in lower case). A host name that is not
// allowed by name gives a backend whose origin is `public_only`: check every address with may_dial() before it is used.
// The Error's word is the reason: bad_url, bad_scheme or private_address. TLS uses the system's certificates.
Result<Backend> make_named_backend(std::string_view url, std::span<const std::string> allowed_hosts,
                                   TlsClients& clients);

// For CallOptions::may_dial of such an origin.
bool may_dial(const Address& address);

}  // namespace weir::proxy
