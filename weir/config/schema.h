// The JSON schema of the configuration file, generated from the table the parser uses (fields.h).
#pragma once

#include <string>

namespace weir::config {

// JSON text (draft 2020-12), ending in a newline: what schema/weir.schema.json holds.
std::string schema();

}  // namespace weir::config
