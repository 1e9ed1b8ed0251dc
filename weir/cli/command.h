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
  std::string_view value;  // what the help calls its value: "FILE"
  std::string_view help;
  bool required = false;
  std::vector<std::string_view> choices = {};  // the only values it takes; the first is the default
  bool repeated = false;                       // may be given more than once
  std::string_view letter = {};                // "-c": a short name
  bool bare = false;                           // its value may be given without the name

  bool positional() const noexcept { return !name.starts_with("--"); }
};

// What the user wrote, by option name.
class Arguments {
 public:
  void set(std::string_view name, std::string value) { values_.insert_or_assign(std::string(name), std::move(value)); }
  // Empty if it was not given and has no default.
  const std::string& operator[](std::string_view name) const noexcept;

  // Of an option that may be repeated, in the order given.
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

// The configuration file: `--config FILE`, `-c FILE`, or just FILE where `bare`.
Option config_option(std::string_view help, bool required, bool bare = true);

// The word every command that prints a report understands.
Option output_option();

// The flag of every command that reads a configuration: values on top of everything else.
Option set_option();

}  // namespace weir::cli
