// Addresses, to listen on and to dial, checked before anybody does: their grammar, and what a listener may say.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/config/document.h"
#include "weir/config/settings.h"

namespace weir::config {

// One spelling for one place: "localhost:80" and "127.0.0.1:80" are the same. The Error quotes the address and says the
// rule. The same grammar as net/socket.h, which a policy must not need.
Result<std::string> canonical_address(std::string_view text);

// Whether a text is an address that somebody else listens on, where a host may have a name: "redis.example.com:6379".
// The same grammar as net/resolve.h.
Result<void> check_target(std::string_view text);

// The entries of `listen`: addresses, none of them twice (port 0 is a free one, so that it may be), what is spoken
// there and who may reach it. REQUIRES: the tree was checked and its secrets resolved.
void check_listeners(const Document& document, NodeId root, const Admin& tokens, Complaints& complaints);

}  // namespace weir::config
