// Builds a Policy's routes from the checked section `routes`.
#pragma once

#include <string>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/policy/match.h"

namespace weir::config {

// `root` is the node of the whole file. Complains about unknown limits and about limits that a route cannot use.
std::vector<Route> read_routes(const Document& document, NodeId root, const Limits& limits, Complaints& complaints,
                               std::vector<std::string>& warnings);

}  // namespace weir::config
