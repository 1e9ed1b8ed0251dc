// The reference page of the configuration file, generated from the table of fields (fields.h).
#pragma once

#include <string>

namespace weir::config {

// Returns the content of docs/configuration-reference.md.
std::string reference();

}  // namespace weir::config
