#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/base/zone.h"
#include "weir/cli/configuration.h"
#include "weir/cli/progress.h"
#include "weir/cli/simulate.h"
#include "weir/cli/simulate_report.h"
#include "weir/simulate/log_run.h"
#include "weir/simulate/report_html.h"
#include "weir/simulate/report_json.h"
#include "weir/simulate/traffic.h"

namespace weir::cli {
namespace {

// Parses the options of a replay. Keeps the first error.
class ReplayArguments {
 public:
  explicit ReplayArguments(const Arguments& arguments) : arguments_(arguments) {}

  const std::string& complaint() const noexcept { return complaint_; }

  std::optional<simulate::LogFormat> format() const { return simulate::log_format_of(arguments_["--format"]); }

  std::int64_t count(std::string_view option, std::int64_t otherwise, std::int64_t most) {
    const std::string& text = arguments_[option];
    if (text.empty()) return otherwise;
    const Result<std::int64_t> number = parse_size(text);
    if (number && *number >= 1 && *number <= most) return *number;
    print_error(option, text, "must be a whole number from 1 to " + std::to_string(most));
    return otherwise;
  }

  Duration window() {
    const std::string& text = arguments_["--window"];
    if (text.empty()) return std::chrono::seconds{60};
    const Result<Duration> read = parse_duration(text);
    if (read && *read >= Duration::zero() && *read <= std::chrono::hours{24}) return *read;
    print_error("--window", text, "must be a duration up to 24h, e.g. 60s");
    return {};
  }

  double percent() {
    std::string text = arguments_["--deny-at-most"];
    if (text.empty()) return 0;
    if (text.ends_with('%')) text.pop_back();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() && *end == '\0' && std::isfinite(value) && value >= 0 && value < 100) return value;
    print_error("--deny-at-most", text, "must be a percentage from 0 to less than 100, e.g. 0.1");
    return 0;
  }

  simulate::ReaderOptions reader() {
    simulate::ReaderOptions options;
    if (const std::string& name = arguments_["--zone"]; !name.empty()) {
      const Result<Zone> zone = Zone::load(name);
      if (zone) {
        options.zone = *zone;
      } else if (complaint_.empty()) {
        complaint_ = "--zone: " + zone.error().detail;
      }
    }
    for (const std::string& text : arguments_.all("--field")) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
        print_error("--field", text, "must be FIELD=NAME, e.g. header:x-tenant-id=tenant");
        continue;
      }
      options.fields.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    return options;
  }

 private:
  void print_error(std::string_view option, const std::string& value, const std::string& rule) {
    if (complaint_.empty()) complaint_ = std::string(option) + " " + quote(value) + " " + rule;
  }

  const Arguments& arguments_;
  std::string complaint_;
};

void print_report(const simulate::Report& report, const std::string& output, Console& console) {
  if (output == "json") {
    console.out.write(simulate::write_json(report));
  } else if (output == "html") {
    console.out.write(simulate::write_html(report));
  } else if (output == "csv") {
    print_csv(report, console.out);
  } else {
    print_tables(report, console.out);
  }
}

}  // namespace

Exit replay_logs(const Arguments& arguments, Console& console) {
  ReplayArguments read(arguments);
  simulate::LogRunOptions options;
  const simulate::ReaderOptions reader = read.reader();
  options.window = read.window();
  options.spread = arguments["--spread"] == "none" ? simulate::Spread::none : simulate::Spread::even;
  options.replay.clients_max = static_cast<std::size_t>(read.count("--clients", 1'000'000, 1'000'000'000));
  options.replay.hit_shown = static_cast<std::size_t>(read.count("--top", 20, bounds::log_clients_shown_max));
  options.replay.tolerated_percent = read.percent();
  if (!read.complaint().empty()) {
    console.print_error(read.complaint());
    return kUsage;
  }
  std::vector<simulate::NamedPolicy> policies;
  for (const std::string& path : {arguments["--config"], arguments["--compare"]}) {
    if (path.empty()) continue;
    const std::optional<config::Loaded> loaded = load_or_explain(path, arguments, console);
    if (!loaded) return kUsage;
    policies.push_back({path, loaded->policy});
  }
  std::vector<std::unique_ptr<simulate::LogInput>> inputs;
  for (const std::string& path : arguments.all("LOG")) {
    Result<std::unique_ptr<simulate::LogInput>> input = simulate::LogInput::open(path, read.format(), reader);
    if (!input) {
      console.print_error(input.error().detail);
      return kFailed;
    }
    inputs.push_back(std::move(*input));
  }
  simulate::LogRun run(std::move(policies), std::move(inputs), options);
  for (const std::string& doubt : run.doubts()) console.print_error(doubt);
  console.err.flush();
  std::optional<Result<simulate::Report>> report;
  {
    Progress progress(console, "line", run.bytes_all(), true);
    report = run.run([&](std::uint64_t lines, std::size_t bytes) { progress.update(lines, bytes); });
  }
  if (!*report) {
    console.print_error(report->error().detail);
    return kFailed;
  }
  const simulate::LogReport& log = (*report)->log;
  for (const simulate::LogReport::Malformed& line : log.shown) {
    console.print_error("skipped " + line.file + ":" + std::to_string(line.line) + ": " + line.reason);
  }
  if (log.skipped() > log.shown.size()) {
    console.print_error("skipped " + counted(log.skipped(), "line") + " in all: " + std::to_string(log.malformed) +
                        " malformed, " + std::to_string(log.late) + " too late");
  }
  print_report(**report, arguments["--output"], console);
  if (!console.out.flush()) return kFailed;
  return log.lines > 0 && log.skipped() == log.lines ? kFailed : kOk;
}

Exit generate_log(const Arguments& arguments, Console& console) {
  ReplayArguments read(arguments);
  const std::int64_t lines = read.count("--generate", 0, 10'000'000'000);
  const std::int64_t seed = read.count("--seed", 1, 1'000'000'000'000);
  if (!read.complaint().empty()) {
    console.print_error(read.complaint());
    return kUsage;
  }
  // A Wednesday at nine.
  constexpr Wall kStart{std::chrono::sys_days{std::chrono::year{2026} / 11 / 18} + std::chrono::hours{9}};
  simulate::Traffic traffic(read.format().value_or(simulate::LogFormat::combined), static_cast<std::uint64_t>(seed),
                            kStart);
  std::string text;
  for (std::int64_t i = 0; i < lines && console.out.failure() == 0; ++i) {
    traffic.write_line(text);
    console.out.write(text);
    text.clear();
  }
  return console.out.flush() ? kOk : kFailed;
}

}  // namespace weir::cli
