// The help texts, made from the command table.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/cli/command.h"

namespace weir::cli {

// What `weir` alone prints.
std::string general_help();

std::string help_of(const Command& command);

// "weir config check [FILE]"
std::string usage_of(const Command& command);
// The details of a command: a line for each paragraph, lines that are indented as they are, and empty lines.
std::vector<std::string> paragraphs_of(std::string_view details);
// "--config FILE", "--yes", "LIMIT".
std::string spelled(const Option& option);
// What an option means, with its choices.
std::string explain_option(const Option& option);
// Each exit status and its meaning.
const std::vector<std::pair<std::string_view, std::string_view>>& exit_statuses();

// What `weir config` prints: the commands that begin with this word.
std::string help_of_group(std::string_view group);

}  // namespace weir::cli
