// The JSON schema of the configuration file, generated from the table of fields (fields.h).
#pragma once

#include <string>

namespace weir::config {

// Returns the content of schema/weir.schema.json (draft 2020-12).
std::string schema();

}  // namespace weir::config
