// The help texts, made from the command table.
#pragma once

#include <string>
#include <string_view>

#include "weir/cli/command.h"

namespace weir::cli {

// What `weir` alone prints.
std::string general_help();

std::string help_of(const Command& command);

// What `weir config` prints: the commands that begin with this word.
std::string help_of_group(std::string_view group);

}  // namespace weir::cli
