// What `weir version` and `weir --version` print.
#pragma once

#include <string>
#include <string_view>

namespace weir::cli {

// "0.1.0"
std::string_view version_number();

// One line, with its newline.
std::string version_text();

}  // namespace weir::cli
