#include <string>

#include "weir/cli/commands.h"
#include "weir/cli/completion_scripts.h"

namespace weir::cli {
namespace {

// In single quotes, as fish reads them.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    if (c != '\n') out += c;
  }
  return out + "'";
}

std::string fish_words(std::string_view group) {
  std::string text;
  for (const std::string_view word : words_after(group)) {
    std::string_view summary;
    for (const Command& command : commands()) {
      if (command.name == std::string(group) + std::string(word)) summary = command.summary;
    }
    const std::string at(group.substr(0, group.empty() ? 0 : group.size() - 1));
    text += "complete -c weir -n " + fish_quoted("__weir_at " + at) + " -f -a " + fish_quoted(word);
    if (!summary.empty()) text += " -d " + fish_quoted(summary);
    text += "\n";
  }
  return text;
}

std::string fish_options(const Command& command) {
  const std::string begin = "complete -c weir -n " + fish_quoted("__weir_in " + std::string(command.name));
  std::string text;
  for (const Option& option : command.options) {
    if (option.positional() || option.bare) {
      if (!option.choices.empty()) text += begin + " -f -a " + fish_quoted(joined_words(option.choices)) + "\n";
      if (takes_file(option)) text += begin + " -F\n";
    }
    if (option.positional()) continue;
    text += begin + " -l " + std::string(option.name.substr(2));
    if (!option.letter.empty()) text += " -s " + std::string(option.letter.substr(1));
    if (!option.flag()) {
      text += takes_file(option) ? " -r -F" : " -x";
      if (!option.choices.empty()) text += " -a " + fish_quoted(joined_words(option.choices));
    }
    text += " -d " + fish_quoted(option.help) + "\n";
  }
  return text + begin + " -s h -l help -d 'this text'\n";
}

}  // namespace

std::string fish_completion() {
  std::string text =
      "# fish completion for weir\n"
      "# The words before the cursor that are no options, without the program and the word that changes nothing.\n"
      "function __weir_words\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  test \"$words[1]\" = " +
      std::string(kAnyCommandPrefix) +
      "; and set -e words[1]\n"
      "  string match -v -- '-*' $words\n"
      "end\n"
      "# Whether exactly these words were typed.\n"
      "function __weir_at\n"
      "  test \"$(__weir_words)\" = \"$argv\"\n"
      "end\n"
      "# Whether these words were typed first.\n"
      "function __weir_in\n"
      "  set -l words (__weir_words)\n"
      "  test \"$words[1..$(count $argv)]\" = \"$argv\"\n"
      "end\n"
      "complete -c weir -f\n" +
      fish_words("");
  text += "complete -c weir -n '__weir_at ' -f -a '" + std::string(kAnyCommandPrefix) +
          "' -d 'any command, with this word before it'\n"
          "complete -c weir -n '__weir_at ' -f -a 'help' -d 'help about a command'\n"
          "complete -c weir -n '__weir_at ' -l version -d 'the version'\n";
  for (const std::string_view group : command_groups()) text += fish_words(std::string(group) + " ");
  for (const Command& command : commands()) text += fish_options(command);
  return text;
}

}  // namespace weir::cli
