// Addresses to listen on, checked before anybody listens: their grammar, and that none is there twice.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/policy/document.h"

namespace weir::policy {

// One spelling for one place: "localhost:80" and "127.0.0.1:80" are the same. The Error quotes the address and says the
// rule. The same grammar as net/socket.h, which a policy must not need.
Result<std::string> canonical_address(std::string_view text);

// The addresses of `listen`. Port 0 is a free one, so that it may be there more than once.
void check_addresses(const Document& document, NodeId root, Complaints& complaints);

}  // namespace weir::policy
