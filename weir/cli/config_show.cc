#include <optional>
#include <string>

#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"
#include "weir/policy/describe.h"
#include "weir/wire/json.h"

namespace weir::cli {
namespace {

void print_json(const policy::Loaded& loaded, Output& out) {
  std::string text;
  JsonWriter json(text);
  json.begin_array();
  for (const policy::Setting& setting : loaded.origins) {
    json.begin_object().key("path").string(setting.path).key("value").string(setting.value);
    json.key("origin").string(setting.origin).end_object();
  }
  json.end_array();
  out.write(text + "\n");
}

// `path: value  # origin`: what is at its default steps back.
void print_lines(const std::string& lines, Output& out) {
  std::size_t begin = 0;
  while (begin < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string line = lines.substr(begin, end - begin);
    const std::size_t comment = line.rfind("  # ");
    if (comment == std::string::npos) {
      out.write(line + "\n");
    } else if (line.substr(comment) == "  # default") {
      out.write(out.painted(Paint::dim, line) + "\n");
    } else {
      out.write(line.substr(0, comment) + out.painted(Paint::green, line.substr(comment)) + "\n");
    }
    begin = end + 1;
  }
}

Exit run(const Arguments& arguments, Console& console) {
  const std::optional<policy::Loaded> loaded = load_or_complain(arguments["--config"], console);
  if (!loaded) return kUsage;
  warn(loaded->warnings, console);
  if (arguments["--output"] == "json") {
    print_json(*loaded, console.out);
  } else {
    print_lines(policy::show(*loaded), console.out);
  }
  return kOk;
}

}  // namespace

Command config_show() {
  return {"config show",
          "print every value in force and where it came from",
          "Defaults, then the file, then WEIR_* variables: the last one wins, and its name stands behind\n"
          "the value. Secrets are hidden. Without --config, the environment alone is the configuration.",
          {{"--config", "FILE", "the configuration"}, output_option()},
          "# What does this file leave at its default?\n"
          "weir config show --config weir.yaml | grep '# default'\n"
          "# Does the variable arrive?\n"
          "WEIR_REDIS_MODE=cluster weir config show --config weir.yaml | grep redis.mode",
          run};
}

}  // namespace weir::cli
