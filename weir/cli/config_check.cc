#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/base/text.h"
#include "weir/cli/commands.h"
#include "weir/cli/configuration.h"
#include "weir/cli/table.h"
#include "weir/config/describe.h"
#include "weir/wire/json.h"

namespace weir::cli {
namespace {

// "20 at once, then 100 per 1s (one per 10ms)".
std::string sentence(const NamedLimit& limit, const config::Described& described) {
  if (!limit.numbers) return described.numbers;
  const Limit& numbers = *limit.numbers;
  const std::string interval = numbers.count() == 1 ? "" : " (one per " + print_duration(numbers.interval()) + ")";
  return std::to_string(numbers.burst()) + " at once, then " + std::to_string(numbers.count()) + " per " +
         print_duration(numbers.period()) + interval;
}

// Entries stand on lines of their own: they are too long for a column.
void print_entries(const std::string& title, std::string_view about, std::string_view rest, Output& out) {
  if (rest.empty()) return;
  out.write("\n" + out.painted(Paint::bold, title) + std::string(about) + ":\n");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find("; "), rest.size());
    out.write("  " + std::string(rest.substr(0, end)) + "\n");
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
}

void print_routes(const config::Loaded& loaded, Output& out) {
  const std::vector<config::DescribedRoute> routes = config::describe_routes(*loaded.policy);
  if (routes.empty()) return;
  out.write("\n");
  Table table({"ROUTE", "MATCH", "LIMITS", "CHARGE", "COST", "MODE", "BACKEND"});
  for (const config::DescribedRoute& route : routes) {
    table.add({route.name, route.match, route.limits, route.charge == "together" ? "" : route.charge,
               route.cost == "1" ? "" : route.cost, route.mode == "enforce" ? "" : route.mode, route.backend});
  }
  table.print(out);
}

const std::vector<std::string> kHeads = {"LIMIT", "NUMBER", "KEY", "ID", "ALLOWS", "QUOTA", "OVERRIDES", "MODE"};

// For programs, so it spells out the defaults that the table leaves out.
void print_csv(const config::Loaded& loaded, Console& console) {
  const std::vector<config::Described> limits = config::describe(*loaded.policy);
  Table table(kHeads);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const config::Described& limit = limits[i];
    table.add({limit.name, limit.number, limit.key, limit.id, sentence(loaded.policy->limits()[i], limit), limit.quota,
               limit.overrides, limit.mode});
  }
  table.print_csv(console.out);
  warn(loaded.warnings, console);
}

void print_csv(const config::Problems& problems, Output& out) {
  Table table({"FILE", "LINE", "COLUMN", "MESSAGE"});
  for (const config::Problem& problem : problems) {
    table.add({problem.file, std::to_string(problem.line), std::to_string(problem.column), problem.sentence});
  }
  table.print_csv(out);
}

void print_table(const config::Loaded& loaded, const std::string& path, Console& console) {
  Output& out = console.out;
  const std::vector<config::Described> limits = config::describe(*loaded.policy);
  out.write(out.painted(Paint::green, path + " is valid") + ": " + counted(limits.size(), "limit") + ", " +
            counted(loaded.policy->override_count(), "override") +
            (loaded.policy->routes().empty() ? "" : ", " + counted(loaded.policy->routes().size(), "route")) + "\n");
  Table table(kHeads);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const config::Described& limit = limits[i];
    // Leave out the obvious: any text is an id, and the ids of an ip key are addresses.
    const bool plain_id = limit.id == "text" || limit.id == limit.key;
    table.add({limit.name, limit.number, limit.key, plain_id ? "" : limit.id,
               sentence(loaded.policy->limits()[i], limit), limit.quota, limit.overrides == "0" ? "" : limit.overrides,
               limit.mode == "enforce" ? "" : limit.mode});
  }
  if (!table.empty()) out.write("\n");
  table.print(out);
  for (const config::Described& limit : limits) {
    print_entries("Schedule of " + limit.name, ", the first that matches", limit.schedule, out);
    print_entries("Tiers of " + limit.name, "", limit.tiers, out);
  }
  print_routes(loaded, out);
  warn(loaded.warnings, console);
}

void print_json(const config::Loaded& loaded, Output& out) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("valid").boolean(true).key("limits").begin_array();
  const std::vector<config::Described> limits = config::describe(*loaded.policy);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const config::Described& limit = limits[i];
    json.begin_object().key("name").string(limit.name).key("number");
    limit.number.empty() ? json.null() : json.number(limit.number);
    json.key("key").string(limit.key).key("id").string(limit.id).key("allows").string(
        sentence(loaded.policy->limits()[i], limit));
    json.key("quota").string(limit.quota).key("overrides").number(limit.overrides).key("mode").string(limit.mode);
    json.key("schedule").string(limit.schedule).key("tiers").string(limit.tiers).end_object();
  }
  json.end_array().key("routes").begin_array();
  for (const config::DescribedRoute& route : config::describe_routes(*loaded.policy)) {
    json.begin_object()
        .key("name")
        .string(route.name)
        .key("match")
        .string(route.match)
        .key("limits")
        .string(route.limits);
    json.key("charge").string(route.charge).key("mode").string(route.mode).key("cost").string(route.cost);
    json.key("backend").string(route.backend).end_object();
  }
  json.end_array().key("warnings").begin_array();
  for (const std::string& warning : loaded.warnings) json.string(warning);
  json.end_array().end_object();
  out.write(text + "\n");
}

void print_json(const config::Problems& problems, Output& out) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("valid").boolean(false).key("problems").begin_array();
  for (const config::Problem& problem : problems) {
    json.begin_object().key("file").string(problem.file).key("line").number(problem.line);
    json.key("column").number(problem.column).key("message").string(problem.sentence).end_object();
  }
  json.end_array().end_object();
  out.write(text + "\n");
}

Exit run_check(const Arguments& arguments, Console& console) {
  const std::string& path = arguments["--config"];
  const bool as_json = arguments["--output"] == "json";
  const bool as_csv = arguments["--output"] == "csv";
  const Result<Flags> flags = read_flags(arguments);
  if (!flags) {
    console.print_error(flags.error().detail);
    return kUsage;
  }
  config::Outcome outcome = load(path, *flags);
  if (const auto* const problems = std::get_if<config::Problems>(&outcome)) {
    if (as_json) {
      print_json(*problems, console.out);
    } else if (as_csv) {
      print_csv(*problems, console.out);
    } else {
      print_error(*problems, path, console);
    }
    return kUsage;
  }
  auto& loaded = std::get<config::Loaded>(outcome);
  if (loaded.policy->limits().empty()) {
    loaded.warnings.push_back((path.empty() ? "the environment" : path) +
                              " has no limits: only callers that send their own numbers (/v1/throttle, CL.THROTTLE) "
                              "are limited");
  }
  for (std::string& sentence : doubt_certificates(loaded, path)) loaded.warnings.push_back(std::move(sentence));
  for (std::string& sentence : doubt_listeners(loaded)) loaded.warnings.push_back(std::move(sentence));
  for (std::string& sentence : doubt_redis(loaded, loaded.policy->limits())) {
    loaded.warnings.push_back(std::move(sentence));
  }
  if (as_json) {
    print_json(loaded, console.out);
  } else if (as_csv) {
    print_csv(loaded, console);
  } else {
    print_table(loaded, path, console);
  }
  return kOk;
}

}  // namespace

Command config_check() {
  return {"config check",
          "validate a configuration and print what was understood",
          "Reads the file, the files it names and the WEIR_* variables, and starts nothing. Prints every\n"
          "problem as file:line:column and a sentence and exits with 2, or prints the limits in plain words.",
          {config_option("the configuration", true), set_option(), output_option()},
          "# What does this file mean?\n"
          "weir config check weir.yaml\n"
          "# Would it also be valid with Redis?\n"
          "weir config check weir.yaml --set store=redis --set redis.mode=cluster\n"
          "# In an editor or a pipeline:\n"
          "weir config check weir.yaml --output json",
          run_check};
}

}  // namespace weir::cli
