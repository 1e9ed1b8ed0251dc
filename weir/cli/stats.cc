#include <string>
#include <utility>

#include "weir/base/printable.h"
#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/commands.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"
#include "weir/simulate/report_html.h"

namespace weir::cli {
namespace {

void print_totals(const Answer& stats, Output& out) {
  const Answer& store = stats["store"];
  const Answer& totals = stats["totals"];
  const Answer& latency = stats["latency_seconds"];
  const bool down = store["up"].is(Answer::Kind::boolean) && !store["up"].is_true();
  const auto uptime = std::chrono::seconds{static_cast<std::int64_t>(stats["uptime_seconds"].number())};
  out.write("up " + print_duration(uptime) + ", policy version " + printable(stats["policy_version"].text()) +
            ", store " + printable(store["kind"].text()) + (down ? " " + out.painted(Paint::red, "unavailable") : "") +
            "\n");
  const std::uint64_t requests = totals["requests"].count();
  const auto part = [&](const char* field, const char* words) {
    const std::uint64_t count = totals[field].count();
    const std::string share = count > 0 ? " (" + simulate::percent(count, requests) + ")" : "";
    return simulate::grouped(count) + " " + words + share;
  };
  std::string text =
      simulate::grouped(requests) + " requests: " + part("allowed", "allowed") + ", " + part("denied", "denied");
  // Rare events get a line only if they happened.
  for (const auto& [field, words] : {std::pair{"shadow_denied", "denied in shadow"},
                                     {"allow_listed", "on the allow list"},
                                     {"deny_listed", "on the deny list"}}) {
    if (totals[field].count() > 0) text += ", " + part(field, words);
  }
  out.write(text + "\n");
  if (!latency.items().empty()) {
    out.write("latency: p50 " + readable_seconds(latency["p50"]) + ", p99 " + readable_seconds(latency["p99"]) +
              ", p99.9 " + readable_seconds(latency["p999"]) + "\n");
  }
}

Exit run_stats(const Arguments& arguments, Console& console) {
  AdminApi api(arguments, console);
  const std::optional<AdminAnswer> answer = api.ask("GET", "/ratelimit/stats");
  if (!answer) return api.exit();
  const std::string& format = arguments["--output"];
  if (format == "json") {
    write_json(answer->content, console.out);
    return console.out.flush() ? kOk : kFailed;
  }
  Table table({"LIMIT", "ALLOWED", "DENIED", "SHADOW_DENIED", "ACTIVE"});
  table.numbers({"ALLOWED", "DENIED", "SHADOW_DENIED", "ACTIVE"});
  for (const Answer& limit : answer->json["limits"].items()) {
    table.add({format == "csv" ? limit["limit"].text() : limit_cell(limit), limit["allowed"].text(),
               limit["denied"].text(), limit["shadow_denied"].text(), limit["active"].text()});
  }
  if (format == "csv") {
    table.print_csv(console.out);
  } else {
    print_totals(answer->json, console.out);
    table.print(console.out);
  }
  return console.out.flush() ? kOk : kFailed;
}

}  // namespace

Command stats() {
  return {
      "stats",
      "show what a server has decided since it started",
      "Prints totals, then a row for each limit.",
      with_remote_options({output_option()}, Api::admin),
      "# the server on this machine\nweir stats\n"
      "# another server, as JSON\nweir stats --admin https://weir.example.com --token-file token --output json",
      run_stats,
  };
}

}  // namespace weir::cli
