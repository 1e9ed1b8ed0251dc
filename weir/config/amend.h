// Applies changes from the admin API to a configuration's tree, before it is checked, so that the result is validated
// like a file.
#pragma once

#include <span>
#include <string_view>

#include "weir/config/document.h"
#include "weir/config/parse.h"

namespace weir::config {

// The origin shown for an amendment's problems and values.
inline constexpr std::string_view kAmendmentName = "api";

// Applies the amendments in order. Call it last: they take precedence over file, variables and flags.
void amend(std::span<const Amendment> amendments, Document& document, NodeId root, Complaints& complaints);

}  // namespace weir::config
