// What `weir version` and `weir --version` print.
#pragma once

#include <string>

namespace weir::cli {

// One line, with its newline.
std::string version_text();

}  // namespace weir::cli
