#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "weir/cli/commands.h"
#include "weir/cli/completion_scripts.h"

namespace weir::cli {
namespace {

// What may follow the words typed so far, one `case` branch per command.
std::string bash_branches() {
  std::string text;
  for (const Command& command : commands()) {
    std::string words = "--help";
    bool files = false;
    for (const Option& option : command.options) {
      if (option.positional()) {
        files = files || takes_file(option);
        for (const std::string_view choice : option.choices) words += " " + std::string(choice);
      } else {
        words += " " + std::string(option.name);
        files = files || option.bare;
      }
    }
    const std::string name(command.name);
    text += "    '" + name + "' | '" + name + " '*) words='" + words + "' files=" + (files ? "yes" : "") + " ;;\n";
  }
  return text;
}

// The values of options that take one of a fixed set, or a file. The command is part of the pattern, because the same
// option may take other values in another command.
std::string bash_values() {
  std::string text;
  for (const Command& command : commands()) {
    for (const Option& option : command.options) {
      if (option.positional() || option.flag()) continue;
      const std::string begin = "'" + std::string(command.name) + " '*'";
      std::string line = "    " + begin + std::string(option.name) + "'";
      if (!option.letter.empty()) line += " | " + begin + std::string(option.letter) + "'";
      line += ") words='" + joined_words(option.choices);
      text += line + "' files=" + (takes_file(option) ? "yes" : "") + " ;;\n";
    }
  }
  return text;
}

std::string bash_groups() {
  std::string text;
  for (const std::string_view group : command_groups()) {
    text += "    " + std::string(group) + ") words='" + joined_words(words_after(std::string(group) + " ")) +
            " --help' ;;\n";
  }
  return text;
}

std::string bash() {
  return "# bash completion for weir\n"
         "_weir() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words='' files=''\n"
         "  local typed=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n"
         "  typed=${typed#" +
         std::string(kAnyCommandPrefix) +
         "}\n"
         "  typed=${typed# }\n"
         "  case $typed in\n"
         "    '') words='" +
         joined_words(words_after("")) + " " + std::string(kAnyCommandPrefix) + " help --help --version' ;;\n" +
         bash_groups() + bash_branches() +
         "  esac\n"
         "  case $typed in\n" +
         bash_values() +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ $files && $current != -* ]] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
         "}\n"
         "complete -o filenames -F _weir weir\n";
}

Exit run_completion(const Arguments& arguments, Console& console) {
  const std::string& shell = arguments["SHELL"];
  console.out.write(shell == "zsh" ? zsh_completion() : shell == "fish" ? fish_completion() : bash());
  return kOk;
}

}  // namespace

bool takes_file(const Option& option) {
  constexpr std::string_view kFiles[] = {"FILE", "LOG", "OLD", "NEW"};
  return std::find(std::begin(kFiles), std::end(kFiles), option.value) != std::end(kFiles);
}

std::vector<std::string_view> words_after(std::string_view group) {
  std::vector<std::string_view> words;
  std::set<std::string_view> seen;
  for (const Command& command : commands()) {
    if (!command.name.starts_with(group)) continue;
    const std::string_view rest = command.name.substr(group.size());
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (seen.insert(word).second) words.push_back(word);
  }
  return words;
}

std::string joined_words(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

Command completion() {
  return {"completion",
          "print a shell completion script",
          "Prints a script that completes commands, options, their values and files.",
          {{"SHELL", "SHELL", "the shell", true, {"bash", "zsh", "fish"}}},
          "# For this bash; for all, put it into /etc/bash_completion.d/\n"
          "source <(weir completion bash)\n"
          "# For zsh, before compinit runs\n"
          "weir completion zsh > \"${fpath[1]}/_weir\"\n"
          "# For fish\n"
          "weir completion fish > ~/.config/fish/completions/weir.fish",
          run_completion};
}

}  // namespace weir::cli
