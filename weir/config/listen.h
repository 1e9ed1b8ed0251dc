// The entries of `listen`: what a server must be able to do with them before it starts.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/config/document.h"
#include "weir/config/settings.h"

namespace weir::config {

// One spelling for one address: "localhost:80" and "127.0.0.1:80" are the same. Errors as of Address::parse().
Result<std::string> canonical_address(std::string_view text);

// The entries of `listen`: addresses, none of them twice (port 0 is a free one, so that it may be), what is spoken
// there and who may reach it. REQUIRES: the tree was checked and its secrets resolved.
void check_listeners(const Document& document, NodeId root, const Admin& tokens, Complaints& complaints);

}  // namespace weir::config
