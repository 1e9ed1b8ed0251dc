// Changes that the admin API makes to a configuration: the tree is changed before it is checked, so that what comes
// out is validated like a file.
#pragma once

#include <span>
#include <string_view>

#include "weir/config/document.h"
#include "weir/config/parse.h"

namespace weir::config {

// Where an amendment's problems and values are said to come from.
inline constexpr std::string_view kAmendmentName = "api";

// In the order given. Applied last: over file, variables and flags.
void amend(std::span<const Amendment> amendments, Document& document, NodeId root, Complaints& complaints);

}  // namespace weir::config
