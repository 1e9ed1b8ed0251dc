#include <optional>
#include <string>
#include <vector>

#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"
#include "weir/cli/table.h"
#include "weir/config/describe.h"
#include "weir/wire/json.h"

namespace weir::cli {
namespace {

void print_json(const std::vector<config::Setting>& settings, Output& out) {
  std::string text;
  JsonWriter json(text);
  json.begin_array();
  for (const config::Setting& setting : settings) {
    json.begin_object().key("path").string(setting.path).key("value");
    if (setting.is_list) {
      json.begin_array();
      for (const std::string& item : setting.items) json.string(item);
      json.end_array();
    } else {
      json.string(setting.value);
    }
    json.key("origin").string(setting.origin).end_object();
  }
  json.end_array();
  out.write(text + "\n");
}

// `path: value  # origin`: what is at its default steps back.
void print_lines(const std::vector<config::Setting>& settings, Output& out) {
  for (const config::Setting& setting : settings) {
    const std::string line = setting.path + ": " + setting.value;
    const std::string comment = "  # " + setting.origin;
    if (setting.origin == "default") {
      out.write(out.painted(Paint::dim, line + comment) + "\n");
    } else {
      out.write(line + out.painted(Paint::green, comment) + "\n");
    }
  }
}

void print_csv(const std::vector<config::Setting>& settings, Output& out) {
  Table table({"PATH", "VALUE", "ORIGIN"});
  for (const config::Setting& setting : settings) table.add({setting.path, setting.value, setting.origin});
  table.print_csv(out);
}

Exit run_show(const Arguments& arguments, Console& console) {
  const std::optional<config::Loaded> loaded = load_or_complain(arguments["--config"], arguments, console);
  if (!loaded) return kUsage;
  warn(loaded->warnings, console);
  if (arguments["--output"] == "json") {
    print_json(config::in_force(*loaded), console.out);
  } else if (arguments["--output"] == "csv") {
    print_csv(config::in_force(*loaded), console.out);
  } else {
    print_lines(config::in_force(*loaded), console.out);
  }
  return kOk;
}

}  // namespace

Command config_show() {
  return {"config show",
          "print every value in force and where it came from",
          "Defaults, then the file, then WEIR_* variables, then --set: the last one wins, and its name stands\n"
          "behind the value. Secrets are hidden. Without a file, the environment alone is the configuration.",
          {config_option("the configuration", false), set_option(), output_option()},
          "# What does this file leave at its default?\n"
          "weir config show --config weir.yaml | grep '# default'\n"
          "# Does the variable arrive?\n"
          "WEIR_REDIS_MODE=cluster weir config show --config weir.yaml | grep redis.mode",
          run_show};
}

}  // namespace weir::cli
