// Completion scripts, made from the command table: what they share, and one function per shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/cli/command.h"

namespace weir::cli {

// True if the option's value is a file name.
bool takes_file(const Option& option);
// The words that may follow `group`, which is "" or ends with a space: of "config ", "check", "show", …
std::vector<std::string_view> words_after(std::string_view group);
// Joins the words with spaces.
std::string joined_words(const std::vector<std::string_view>& words);

std::string zsh_completion();
std::string fish_completion();

}  // namespace weir::cli
