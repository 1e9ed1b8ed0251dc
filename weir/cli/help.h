// The help texts, made from the command table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/cli/command.h"

namespace weir::cli {

// What `weir` alone prints.
std::string general_help();

std::string help_of(const Command& command);

// What `weir config` prints: the commands that begin with this word.
std::string help_of_group(std::string_view group);

// The candidate that `word` was probably meant to be, or an empty view.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace weir::cli
