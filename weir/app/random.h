// Random bytes for secrets and names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir::app {

Result<std::string> random_bytes(std::size_t size);
std::string hexadecimal(std::string_view bytes);

}  // namespace weir::app
