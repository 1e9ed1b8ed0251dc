#include <nlohmann/json.hpp>
#include <string>

#include "weir/base/text.h"
#include "weir/cli/commands.h"
#include "weir/cli/remote.h"
#include "weir/cli/table.h"

namespace weir::cli {
namespace {

std::string text_of(const nlohmann::json& object, const char* field) {
  const auto at = object.find(field);
  if (at == object.end() || at->is_null()) return {};
  return at->is_string() ? at->get<std::string>() : at->dump();
}

const nlohmann::json& part_of(const nlohmann::json& object, const char* field) {
  static const nlohmann::json none = nlohmann::json::object();
  const auto at = object.find(field);
  return at != object.end() && at->is_object() ? *at : none;
}

void print_totals(const nlohmann::json& stats, Output& out) {
  const nlohmann::json& store = part_of(stats, "store");
  const nlohmann::json& totals = part_of(stats, "totals");
  const nlohmann::json& latency = part_of(stats, "latency_seconds");
  const bool up = store.value("up", true);
  const auto uptime = std::chrono::seconds{static_cast<std::int64_t>(stats.value("uptime_seconds", 0.0))};
  out.write("up " + print_duration(uptime) + ", policy version " + text_of(stats, "policy_version") + ", store " +
            text_of(store, "kind") + (up ? "" : " " + out.painted(Paint::red, "unavailable")) + "\n");
  out.write(text_of(totals, "requests") + " requests: " + text_of(totals, "allowed") + " allowed, " +
            text_of(totals, "denied") + " denied, " + text_of(totals, "shadow_denied") + " denied in shadow, " +
            text_of(totals, "allow_listed") + " on the allow list, " + text_of(totals, "deny_listed") +
            " on the deny list\n");
  if (!latency.empty()) {
    out.write("latency in seconds: p50 " + text_of(latency, "p50") + ", p99 " + text_of(latency, "p99") + ", p99.9 " +
              text_of(latency, "p999") + "\n");
  }
}

Exit run_stats(const Arguments& arguments, Console& console) {
  const Result<Remote> remote = Remote::make(Api::admin, arguments);
  if (!remote) {
    console.complain(remote.error().detail);
    return kUsage;
  }
  const Result<RemoteReply> reply = remote->ask("GET", "/ratelimit/stats");
  if (!reply) {
    console.complain(reply.error().detail);
    return kFailed;
  }
  const auto stats = nlohmann::json::parse(reply->content, nullptr, false);
  if (reply->status != 200 || !stats.is_object()) {
    console.complain(sentence_of(*reply));
    return reply->status == 404 ? kDenied : kFailed;
  }
  if (arguments["--output"] == "json") {
    console.out.write(reply->content);
    return console.out.flush() ? kOk : kFailed;
  }
  Table table({"LIMIT", "ALLOWED", "DENIED", "SHADOW_DENIED", "ACTIVE"});
  const auto limits = stats.find("limits");
  if (limits != stats.end() && limits->is_array()) {
    for (const nlohmann::json& limit : *limits) {
      table.add({text_of(limit, "limit"), text_of(limit, "allowed"), text_of(limit, "denied"),
                 text_of(limit, "shadow_denied"), text_of(limit, "active")});
    }
  }
  if (arguments["--output"] == "csv") {
    table.print_csv(console.out);
  } else {
    print_totals(stats, console.out);
    table.print(console.out);
  }
  return console.out.flush() ? kOk : kFailed;
}

}  // namespace

Command stats() {
  return {
      "stats",
      "shows what a server has decided since it started",
      "Totals, then a row for each limit.",
      with_remote_options({output_option()}, Api::admin),
      "# of the server on this machine\nweir stats\n"
      "# of another one, for a program\nweir stats --admin https://weir.example.com:9090 --token-file /etc/weir/token "
      "--output json",
      run_stats,
  };
}

}  // namespace weir::cli
