#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/printable.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"
#include "weir/cli/remote.h"
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

struct Row {
  std::string path;
  std::string value;
  std::string origin;
};

// `path: value  # origin`; defaults are dim.
void print_lines(const std::vector<Row>& rows, Output& out) {
  for (const Row& row : rows) {
    const std::string line = row.path + ": " + row.value;
    const std::string comment = "  # " + row.origin;
    if (row.origin == "default") {
      out.write(out.painted(Paint::dim, line + comment) + "\n");
    } else {
      out.write(line + out.painted(Paint::green, comment) + "\n");
    }
  }
}

void print_csv(const std::vector<Row>& rows, Output& out) {
  Table table({"PATH", "VALUE", "ORIGIN"});
  for (const Row& row : rows) table.add({row.path, row.value, row.origin});
  table.print_csv(out);
}

Exit show_server(const Arguments& arguments, Console& console) {
  if (!arguments["--config"].empty() || !arguments.all("--set").empty()) {
    console.print_error("give either --admin, or FILE and --set");
    return kUsage;
  }
  AdminApi api(arguments, console);
  const std::optional<AdminAnswer> answer = api.ask("GET", "/ratelimit/config");
  if (!answer) return api.exit();
  const bool csv = arguments["--output"] == "csv";
  std::vector<Row> rows;
  for (const Answer& setting : answer->json["settings"].items()) {
    Row row{setting["path"].text(), setting["value"].text(), setting["source"].text()};
    if (!csv) row = {printable(row.path), printable(row.value), printable(row.origin)};
    rows.push_back(std::move(row));
  }
  if (arguments["--output"] == "json") {
    write_json(answer->content, console.out);
  } else if (csv) {
    print_csv(rows, console.out);
  } else {
    print_lines(rows, console.out);
  }
  return console.out.flush() ? kOk : kFailed;
}

Exit run_show(const Arguments& arguments, Console& console) {
  if (!arguments["--admin"].empty()) return show_server(arguments, console);
  const std::optional<config::Loaded> loaded = load_or_explain(arguments["--config"], arguments, console);
  if (!loaded) return kUsage;
  warn(loaded->warnings, console);
  const std::vector<config::Setting> settings = config::in_force(*loaded);
  if (arguments["--output"] == "json") {
    print_json(settings, console.out);
    return kOk;
  }
  std::vector<Row> rows;
  for (const config::Setting& setting : settings) rows.push_back({setting.path, setting.value, setting.origin});
  arguments["--output"] == "csv" ? print_csv(rows, console.out) : print_lines(rows, console.out);
  return kOk;
}

}  // namespace

Command config_show() {
  std::vector<Option> options{config_option("the configuration", false), set_option(), output_option()};
  std::vector<Option> remote = remote_options(Api::admin);
  remote.front().help = "show what the server with this admin API has in force, instead of a file";
  for (Option& option : remote) options.push_back(std::move(option));
  return {"config show",
          "print every value in force and where it came from",
          "Defaults, then the file, then WEIR_* variables, then --set: the last one wins, and is named\n"
          "behind the value. Secrets are hidden. Without a file, the environment alone is the configuration.\n"
          "With --admin, it asks a running server: values that were changed through its API come from api.",
          std::move(options),
          "# What does this file leave at its default?\n"
          "weir config show --config weir.yaml | grep '# default'\n"
          "# Does the variable arrive?\n"
          "WEIR_REDIS_MODE=cluster weir config show --config weir.yaml | grep redis.mode\n"
          "# What was changed through the API of this server?\n"
          "weir config show --admin http://127.0.0.1:9090 | grep '# api'",
          run_show};
}

}  // namespace weir::cli
