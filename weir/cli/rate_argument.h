// A rate on the command line: "200/s", "10/minute"; a number alone is per second.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/text.h"
#include "weir/cli/command.h"

namespace weir::cli {

Result<Rate> rate_of(const std::string& text);

// Prints an error and returns nothing if the option's value is not a rate.
std::optional<Rate> read_rate(const Arguments& arguments, std::string_view option, Console& console);

}  // namespace weir::cli
