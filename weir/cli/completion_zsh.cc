#include <string>

#include "weir/cli/commands.h"
#include "weir/cli/completion_scripts.h"

namespace weir::cli {
namespace {

// Within single quotes of an _arguments specification: quotes end the string, and brackets and colons have meanings.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c != '\n') {
      out += c;
    }
  }
  return out;
}

// How the value completes: its choices, a file, or anything.
std::string zsh_value(const Option& option) {
  std::string text = ":" + zsh_text(option.value) + ":";
  if (!option.choices.empty()) return text + "(" + joined_words(option.choices) + ")";
  return text + (takes_file(option) ? "_files" : " ");
}

// The `_arguments` of one command.
std::string zsh_arguments(const Command& command) {
  std::string text = "    '" + std::string(command.name) + "')\n      _arguments '(-h --help)'{-h,--help}'[this text]'";
  for (const Option& option : command.options) {
    const std::string star = option.repeated ? "*" : "";
    if (option.positional()) {
      text += " \\\n        '" + star + zsh_value(option) + "'";
      continue;
    }
    const std::string rest = "[" + zsh_text(option.help) + "]" + (option.flag() ? "" : zsh_value(option)) + "'";
    if (!option.letter.empty()) text += " \\\n        '" + std::string(option.letter) + rest;
    text += " \\\n        '" + star + std::string(option.name) + rest;
    if (option.bare) text += " \\\n        '" + zsh_value(option) + "'";
  }
  return text + " ;;\n";
}

// A list for _describe: 'word:what it does'.
std::string zsh_words(std::string_view group) {
  std::string text;
  for (const std::string_view word : words_after(group)) {
    std::string_view summary;
    for (const Command& command : commands()) {
      if (command.name == std::string(group) + std::string(word)) summary = command.summary;
    }
    const std::string what = summary.empty() ? "commands about " + std::string(word) : std::string(summary);
    text += " '" + zsh_text(word) + ":" + zsh_text(what) + "'";
  }
  return text;
}

}  // namespace

std::string zsh_completion() {
  std::string text =
      "#compdef weir\n"
      "# zsh completion for weir\n"
      "_weir() {\n"
      "  local -a list\n"
      "  local name=''\n"
      "  (( CURRENT > 2 )) && [[ $words[2] == " +
      std::string(kAnyCommandPrefix) +
      " ]] && { shift words; (( CURRENT-- )) }\n"
      "  if (( CURRENT == 2 )); then\n"
      "    list=(" +
      zsh_words("") + " '" + std::string(kAnyCommandPrefix) +
      ":any command, with this word before it' 'help:help about a command')\n"
      "    _describe command list\n"
      "    return\n"
      "  fi\n"
      "  name=$words[2]\n"
      "  case $name in\n";
  for (const std::string_view group : command_groups()) {
    text += "    " + std::string(group) + ")\n      if (( CURRENT == 3 )); then\n        list=(" +
            zsh_words(std::string(group) + " ") +
            ")\n        _describe command list\n        return\n      fi\n"
            "      name=\"$words[2] $words[3]\"\n      shift words; (( CURRENT-- )) ;;\n";
  }
  text +=
      "  esac\n"
      "  shift words; (( CURRENT-- ))\n"
      "  case $name in\n";
  for (const Command& command : commands()) text += zsh_arguments(command);
  // Read by `source`, it registers itself; read by the completion system, it is the function's body.
  return text + "  esac\n}\nif [[ ${funcstack[1]-} == _weir ]]; then _weir \"$@\"; else compdef _weir weir; fi\n";
}

}  // namespace weir::cli
