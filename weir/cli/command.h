// A command of the program `weir` as plain data: what it is called, what it takes, what it does. The table of all of
// them (commands.cc) is read by the parser (app/main.cc), by the help (help.h) and by the shell completion.
// To add one: a file with its Command and one row in the table.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/cli/output.h"

namespace weir::cli {

struct Option {
  std::string_view name;   // "--config", or "FILE" for one without a name
  std::string_view value;  // what the help calls its value: "FILE"; empty: it takes none and is a flag
  std::string_view help;
  bool required = false;
  std::vector<std::string_view> choices = {};  // the only values it takes; the first is the default
  bool repeated = false;                       // may be given more than once
  std::string_view letter = {};                // "-c": a short name
  bool bare = false;                           // its value may be given without the name
  bool no_default = false;                     // has choices, and none of them is the default

  bool positional() const noexcept { return !name.starts_with("--"); }
  bool flag() const noexcept { return value.empty(); }
  // The default value; empty: none.
  std::string_view otherwise() const noexcept {
    return choices.empty() || required || no_default ? std::string_view() : choices.front();
  }
};

// What the user wrote, by option name.
class Arguments {
 public:
  void set(std::string_view name, std::string value) { values_.insert_or_assign(std::string(name), std::move(value)); }
  // Empty if it was not given and has no default.
  const std::string& operator[](std::string_view name) const noexcept;

  // Whether a flag was given.
  bool has(std::string_view flag) const noexcept { return !(*this)[flag].empty(); }

  // Values of an option that may be repeated, in the order given.
  void add(std::string_view name, std::string value) { repeated_[std::string(name)].push_back(std::move(value)); }
  std::vector<std::string> all(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::vector<std::string>, std::less<>> repeated_;
};

struct Command {
  std::string_view name;  // "config check": at most two words
  std::string_view summary;
  std::string_view details;  // paragraphs, lines already broken
  std::vector<Option> options;
  std::string_view examples;  // a command a line, each with its `#` comment above it
  Exit (*run)(const Arguments& arguments, Console& console);
};

const std::vector<Command>& commands();

// Words that begin the names of several commands, in the order of the table: "config", "access".
std::vector<std::string_view> command_groups();

// A word that is allowed before any command and changes nothing: `weir ratelimit stats` is `weir stats`.
inline constexpr std::string_view kAnyCommandPrefix = "ratelimit";

// The configuration file: `--config FILE`, `-c FILE`, or just FILE where `bare`.
Option config_option(std::string_view help, bool required, bool bare = true);

// --output, for every command that prints a report.
Option output_option();

// A flag: "--yes".
Option flag_option(std::string_view name, std::string_view help);

// --set, for every command that reads a configuration: its values override everything else.
Option set_option();

}  // namespace weir::cli
