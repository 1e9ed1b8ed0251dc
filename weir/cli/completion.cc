#include <set>
#include <string>

#include "weir/cli/commands.h"

namespace weir::cli {
namespace {

// What may follow the words typed so far, one `case` branch per command.
std::string branches() {
  std::string text;
  for (const Command& command : commands()) {
    std::string words = "--help";
    bool files = false;
    for (const Option& option : command.options) {
      if (option.positional()) {
        files = files || option.choices.empty();
        for (const std::string_view choice : option.choices) words += " " + std::string(choice);
      } else {
        words += " " + std::string(option.name);
        files = files || option.bare;
      }
    }
    text += "    '" + std::string(command.name) + "'*) words='" + words + "' files=" + (files ? "yes" : "") + " ;;\n";
  }
  return text;
}

// The values of options that have a fixed set of them, or that are files.
std::string values() {
  std::set<std::string> lines;
  for (const Command& command : commands()) {
    for (const Option& option : command.options) {
      if (option.positional()) continue;
      std::string line = "    " + std::string(option.name) + ") words='";
      for (const std::string_view choice : option.choices) {
        if (choice != option.choices.front()) line += ' ';
        line += choice;
      }
      lines.insert(line + "' files=" + (option.value == "FILE" ? "yes" : "") + " ;;\n");
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

std::string words_of_group(std::string_view group) {
  std::string text;
  std::set<std::string> seen;
  for (const Command& command : commands()) {
    if (!command.name.starts_with(group)) continue;
    const std::string_view rest = command.name.substr(group.size());
    const std::string word(rest.substr(0, rest.find(' ')));
    if (!seen.insert(word).second) continue;
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::string bash() {
  return "# bash completion for weir\n"
         "_weir() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words='' files=''\n"
         "  local typed=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n"
         "  case $typed in\n"
         "    '') words='" +
         words_of_group("") +
         " help --help --version' ;;\n"
         "    config) words='" +
         words_of_group("config ") + " --help' ;;\n" + branches() +
         "  esac\n"
         "  case $previous in\n" +
         values() +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ $files && $current != -* ]] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
         "}\n"
         "complete -o filenames -F _weir weir\n";
}

}  // namespace

Command completion() {
  return {"completion",
          "print a shell completion script",
          "Prints a script that completes commands, options and files.",
          {{"SHELL", "SHELL", "the shell", true, {"bash"}}},
          "# For this shell; for all, put it into /etc/bash_completion.d/\n"
          "source <(weir completion bash)",
          [](const Arguments&, Console& console) {
            console.out.write(bash());
            return kOk;
          }};
}

}  // namespace weir::cli
