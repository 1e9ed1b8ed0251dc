// Completion scripts, made from the command table: what they share, and one function per shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/cli/command.h"

namespace weir::cli {

// Whether a value is the name of a file.
bool takes_file(const Option& option);
// The words that may follow `group`, which is "" or ends with a space: of "config ", "check", "show", …
std::vector<std::string_view> words_after(std::string_view group);
// With a space between them.
std::string joined_words(const std::vector<std::string_view>& words);

std::string zsh_completion();
std::string fish_completion();

}  // namespace weir::cli
