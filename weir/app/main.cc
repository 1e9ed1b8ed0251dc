// The program `weir`: reads the command line by the command table (cli/command.h) and runs one command.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/app/serving.h"
#include "weir/base/nearest.h"
#include "weir/cli/command.h"
#include "weir/cli/help.h"
#include "weir/cli/output.h"
#include "weir/cli/version.h"

namespace {

using namespace weir::cli;

std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += word == words.back() ? " or " : ", ";
    text += word;
  }
  return text;
}

// Makes CLI11's parser from the table. Lives as long as the parse: CLI11 writes the values into it.
class CommandLine {
 public:
  CommandLine() {
    app_.formatter_fn([](const CLI::App*, std::string, CLI::AppFormatMode) { return general_help(); });
    app_.set_help_flag("-h,--help");
    app_.add_flag("--version", version_);
    for (const Command& command : commands()) add(command);
  }

  // Returns null if no command was named. Throws CLI::ParseError, also for help.
  const Command* parse(int argc, const char* const* argv) {
    app_.parse(argc, argv);
    for (auto& [command, parser] : parsers_) {
      if (parser->parsed()) return command;
    }
    return nullptr;
  }

  Arguments arguments(const Command& command) const {
    Arguments arguments;
    for (const Option& option : command.options) {
      if (option.repeated) {
        for (const std::string& value : lists_.at({&command, option.name})) arguments.add(option.name, value);
        continue;
      }
      if (option.flag()) {
        if (flags_.at({&command, option.name})) arguments.set(option.name, "yes");
        continue;
      }
      const std::string& value = values_.at({&command, option.name});
      arguments.set(option.name, value.empty() ? std::string(option.otherwise()) : value);
    }
    return arguments;
  }

  bool version() const noexcept { return version_; }

  // The help of the innermost command that was named.
  std::string help() const { return app_.help(); }

 private:
  void add(const Command& command) {
    const std::size_t space = command.name.find(' ');
    CLI::App* parent = &app_;
    if (space != std::string_view::npos) parent = group(std::string(command.name.substr(0, space)));
    const std::string name(command.name.substr(space == std::string_view::npos ? 0 : space + 1));
    CLI::App* const parser = parent->add_subcommand(name);
    parser->formatter_fn([&command](const CLI::App*, std::string, CLI::AppFormatMode) { return help_of(command); });
    for (const Option& option : command.options) add(command, option, *parser);
    parsers_.emplace_back(&command, parser);
  }

  void add(const Command& command, const Option& option, CLI::App& parser) {
    if (option.flag()) {
      parser.add_flag(parser_name(option), flags_[{&command, option.name}]);
      return;
    }
    if (option.repeated) {
      // One value each time: what follows may be a file.
      parser.add_option(parser_name(option), lists_[{&command, option.name}])->allow_extra_args(option.positional());
      return;
    }
    CLI::Option* const added = parser.add_option(parser_name(option), values_[{&command, option.name}]);
    added->required(option.required);
    if (option.choices.empty()) return;
    added->check([choices = option.choices](const std::string& value) -> std::string {
      if (std::find(choices.begin(), choices.end(), value) != choices.end()) return "";
      return "\"" + value + "\" must be " + listed(choices);
    });
  }

  // All its spellings, as CLI11 wants them: "-c,--config,FILE".
  static std::string parser_name(const Option& option) {
    std::string name(option.name);
    if (!option.letter.empty()) name = std::string(option.letter) + "," + name;
    if (option.bare) name += "," + std::string(option.value);
    return name;
  }

  CLI::App* group(const std::string& name) {
    CLI::App*& parser = groups_[name];
    if (parser != nullptr) return parser;
    parser = app_.add_subcommand(name);
    parser->formatter_fn([name](const CLI::App*, std::string, CLI::AppFormatMode) { return help_of_group(name); });
    return parser;
  }

  CLI::App app_;
  bool version_ = false;
  std::map<std::string, CLI::App*> groups_;  // "config"
  std::vector<std::pair<const Command*, CLI::App*>> parsers_;
  using Place = std::pair<const Command*, std::string_view>;
  std::map<Place, std::string> values_;  // nodes do not move: CLI11 points at them
  std::map<Place, std::vector<std::string>> lists_;
  std::map<Place, bool> flags_;
};

// The sentence for a first or second word that names no command, or nothing if the words are fine so far.
std::string unknown_command(const std::vector<std::string_view>& words) {
  std::string group;
  for (const std::string_view word : words) {
    if (word.starts_with("-")) return {};
    std::vector<std::string_view> candidates;
    for (const Command& command : commands()) {
      if (command.name == group + std::string(word)) return {};
      if (!command.name.starts_with(group)) continue;
      const std::string_view rest = command.name.substr(group.size());
      candidates.push_back(rest.substr(0, rest.find(' ')));
    }
    if (std::find(candidates.begin(), candidates.end(), word) == candidates.end()) {
      const std::string_view meant = weir::nearest_word(candidates, word);
      return "there is no command \"" + group + std::string(word) + "\"" +
             (meant.empty() ? "; see weir --help" : "; did you mean \"" + group + std::string(meant) + "\"?");
    }
    group += std::string(word) + " ";
  }
  return {};
}

// The command the words begin with, or null.
const Command* find_command(const std::vector<std::string_view>& words) {
  for (const Command& command : commands()) {
    const std::string_view name = command.name;
    const std::size_t space = name.find(' ');
    const bool first = !words.empty() && words[0] == name.substr(0, space);
    const bool second = space == std::string_view::npos || (words.size() > 1 && words[1] == name.substr(space + 1));
    if (first && second) return &command;
  }
  return nullptr;
}

// What CLI11 found, in our words. `command` may be null.
std::string explain(const CLI::ParseError& error, const Command* command) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::size_t colon = text.find(": ");
    return "unexpected argument" + (colon == std::string::npos ? std::string() : " \"" + text.substr(colon + 2) + "\"");
  }
  // CLI11 writes the spellings of an option before its message.
  const std::string_view spelled = std::string_view(text).substr(0, text.find_first_of(": "));
  for (const Option& option : command == nullptr ? std::vector<Option>{} : command->options) {
    const std::string name(option.positional() ? option.value : option.name);
    if (!spelled.starts_with(name) && !(option.bare && spelled.starts_with(option.value))) continue;
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      return "missing " + (option.positional() || option.bare ? std::string(option.value) : name) + " (" +
             std::string(option.help) + ")";
    }
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
      return name + " needs " + (option.repeated ? "a value: " : "one value: ") + std::string(option.value);
    }
  }
  return text;
}

// Returns the sentence for the first word that looks like an option but is not one of the command's; otherwise
// `otherwise`.
std::string refusal(const std::vector<std::string_view>& words, const Command* command, const std::string& otherwise) {
  if (command == nullptr) return otherwise + "; see weir --help";
  const std::string help = "; see weir " + std::string(command->name) + " --help";
  std::vector<std::string_view> known{"--help"};
  for (const Option& option : command->options) {
    if (!option.positional()) known.push_back(option.name);
  }
  for (const std::string_view word : words) {
    const std::string_view name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || name == "--") continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view meant = weir::nearest_word(known, name);
    return "there is no option \"" + std::string(name) + "\"" +
           (meant.empty() ? help : "; did you mean \"" + std::string(meant) + "\"?");
  }
  return otherwise + help;
}

// `weir help`, `weir help config`, `weir help config check`.
Exit help(const std::vector<std::string_view>& words, Console& console) {
  std::string name;
  for (const std::string_view word : words) name += (name.empty() ? "" : " ") + std::string(word);
  if (const std::string sentence = unknown_command(words); !sentence.empty()) {
    console.print_error(sentence);
    return kUsage;
  }
  const Command* const command = find_command(words);
  console.out.write(words.empty() ? general_help() : command != nullptr ? help_of(*command) : help_of_group(name));
  return kOk;
}

Exit run(int argc, const char* const* argv, Console& console) {
  // `weir ratelimit COMMAND` is `weir COMMAND`: the word takes the program's place.
  if (argc > 1 && argv[1] == kAnyCommandPrefix) {
    --argc;
    ++argv;
  }
  std::vector<std::string_view> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin(), words.begin() + (words.size() > 1 && words[1] == kAnyCommandPrefix ? 2 : 1));
    return help(words, console);
  }
  if (const std::string sentence = unknown_command(words); !sentence.empty()) {
    console.print_error(sentence);
    return kUsage;
  }
  CommandLine line;
  try {
    const Command* const command = line.parse(argc, argv);
    if (command != nullptr) return command->run(line.arguments(*command), console);
    if (line.version()) {
      console.out.write(version_text());
      return kOk;
    }
    // A command is missing, and help was not asked for.
    console.err.write(line.help());
    return kUsage;
  } catch (const CLI::CallForHelp&) {
    console.out.write(line.help());
    return kOk;
  } catch (const CLI::ParseError& error) {
    console.print_error(refusal(words, find_command(words), explain(error, find_command(words))));
    return kUsage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe must fail write() instead of killing us, so that the exit status can report it.
  std::signal(SIGPIPE, SIG_IGN);
  Output out(STDOUT_FILENO);
  Output err(STDERR_FILENO);
  Console console{out, err, &weir::app::run_server};
  Exit exit = run(argc, argv, console);
  if (!out.flush()) {
    if (out.failure() != EPIPE) console.print_error(std::string("cannot write: ") + std::strerror(out.failure()));
    exit = kFailed;
  }
  err.flush();
  return exit;
}
