// Builds the edge proxy's Forwarding (policy/forwarding.h) from the checked file.
#pragma once

#include <span>

#include "weir/config/document.h"
#include "weir/identify/client_ip.h"
#include "weir/policy/forwarding.h"
#include "weir/policy/named_limit.h"

namespace weir::config {

// `section` is the node of the whole file or of a route: both have `backend`, `backend_tls`, `error_headers` and
// `preflight`.
Forwarding read_forwarding(const Document& document, NodeId section, Complaints& complaints);

// Complains if a proxy on a UNIX socket needs clients' addresses and no peer is trusted to report them.
void check_unix_clients(const Document& document, NodeId root, std::span<const NamedLimit> limits,
                        const TrustedProxies& trusted, Complaints& complaints);

}  // namespace weir::config
