// From the checked file to where the edge proxy sends requests (policy/forwarding.h).
#pragma once

#include <span>

#include "weir/config/document.h"
#include "weir/identify/client_ip.h"
#include "weir/policy/forwarding.h"
#include "weir/policy/named_limit.h"

namespace weir::config {

// `section` is the whole file's node or that of a route: both have `backend`, `backend_tls`, `error_headers` and
// `preflight`.
Forwarding read_forwarding(const Document& document, NodeId section, Complaints& complaints);

// A proxy on a UNIX socket knows its clients' addresses from trusted peers only.
void check_unix_clients(const Document& document, NodeId root, std::span<const NamedLimit> limits,
                        const TrustedProxies& trusted, Complaints& complaints);

}  // namespace weir::config
