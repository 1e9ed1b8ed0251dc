// Checks the entries of `listen` before a server starts.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/config/document.h"
#include "weir/config/settings.h"

namespace weir::config {

// Returns a canonical spelling: "localhost:80" and "127.0.0.1:80" are the same. Errors as of Address::parse().
Result<std::string> canonical_address(std::string_view text);

// Checks the addresses, the protocols and who may connect. Addresses must be unique, except with port 0, which picks a
// free port. REQUIRES: the tree was checked and its secrets resolved.
void check_listeners(const Document& document, NodeId root, const Admin& tokens, Complaints& complaints);

}  // namespace weir::config
