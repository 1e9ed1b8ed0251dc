// From the checked section `routes` to the routes of a Policy.
#pragma once

#include <string>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/policy/match.h"

namespace weir::config {

// `root` is the whole file's node. What a route names must be there and fit.
std::vector<Route> read_routes(const Document& document, NodeId root, const Limits& limits, Complaints& complaints,
                               std::vector<std::string>& warnings);

}  // namespace weir::config
