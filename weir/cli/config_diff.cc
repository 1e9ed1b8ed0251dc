#include "weir/config/diff.h"

#include <optional>
#include <string>
#include <vector>

#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"
#include "weir/cli/table.h"
#include "weir/wire/json.h"

namespace weir::cli {
namespace {

using config::Change;

std::string_view word(Change::Kind kind) {
  constexpr std::string_view kWords[] = {"added", "removed", "changed"};
  return kWords[static_cast<std::size_t>(kind)];
}

Paint paint(Change::Kind kind) {
  constexpr Paint kPaints[] = {Paint::green, Paint::red, Paint::yellow};
  return kPaints[static_cast<std::size_t>(kind)];
}

void print_json(const std::vector<Change>& changes, Output& out) {
  std::string text;
  JsonWriter json(text);
  json.begin_array();
  for (const Change& change : changes) {
    json.begin_object().key("change").string(word(change.kind)).key("what").string(change.what);
    json.key("before").string(change.before).key("after").string(change.after);
    json.key("live").boolean(change.live).end_object();
  }
  json.end_array();
  out.write(text + "\n");
}

void print_csv(const std::vector<Change>& changes, Output& out) {
  Table table({"CHANGE", "WHAT", "BEFORE", "AFTER", "LIVE"});
  for (const Change& change : changes) {
    table.add(
        {std::string(word(change.kind)), change.what, change.before, change.after, change.live ? "true" : "false"});
  }
  table.print_csv(out);
}

void print_lines(const std::vector<Change>& changes, Output& out) {
  if (changes.empty()) out.write("no change\n");
  for (const Change& change : changes) out.write(out.painted(paint(change.kind), change.text()) + "\n");
}

Exit run_diff(const Arguments& arguments, Console& console) {
  if (const Result<Flags> flags = read_flags(arguments); !flags) {
    console.print_error(flags.error().detail);
    return kUsage;
  }
  // Both are read before either is given up, so that one run shows the problems of both.
  const std::optional<config::Loaded> before = load_or_explain(arguments["OLD"], arguments, console);
  const std::optional<config::Loaded> after = load_or_explain(arguments["NEW"], arguments, console);
  if (!before || !after) return kUsage;
  std::vector<std::string> warnings = before->warnings;
  warnings.insert(warnings.end(), after->warnings.begin(), after->warnings.end());
  warn(std::move(warnings), console);
  const std::vector<Change> changes = config::diff(*before, *after);
  if (arguments["--output"] == "json") {
    print_json(changes, console.out);
  } else if (arguments["--output"] == "csv") {
    print_csv(changes, console.out);
  } else {
    print_lines(changes, console.out);
  }
  return kOk;
}

}  // namespace

Command config_diff() {
  return {"config diff",
          "say what a reload would change",
          "Compares what two configurations mean, not how they are written: comments, order and defaults\n"
          "that are spelled out make no difference.",
          {{"OLD", "OLD", "the configuration in force", true},
           {"NEW", "NEW", "the configuration to come", true},
           set_option(),
           output_option()},
          "# What would this edit do?\n"
          "weir config diff /etc/weir/weir.yaml weir.yaml",
          run_diff};
}

}  // namespace weir::cli
