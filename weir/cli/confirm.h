// Asks before something that cannot be undone.
#pragma once

#include <string_view>

#include "weir/cli/output.h"

namespace weir::cli {

// True if a user can answer: standard input is a terminal.
bool can_ask() noexcept;

// Asks on standard error and reads a line from standard input. Only "y" and "yes" are a yes.
bool confirmed(std::string_view question, Console& console);

}  // namespace weir::cli
