// The reference page of the configuration file, generated from the table the parser uses (fields.h).
#pragma once

#include <string>

namespace weir::config {

// Markdown, ending in a newline: what docs/configuration-reference.md holds.
std::string reference();

}  // namespace weir::config
