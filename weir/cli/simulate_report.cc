#include "weir/cli/simulate_report.h"

#include <chrono>
#include <string>

#include "weir/base/text.h"
#include "weir/cli/table.h"
#include "weir/simulate/report_html.h"

namespace weir::cli {
namespace {

using simulate::grouped;
using simulate::percent;

void print_table(std::string_view title, Table& table, Output& out) {
  if (table.empty()) return;
  out.write("\n" + out.painted(Paint::bold, title) + "\n");
  table.print(out);
}

void print_log(const simulate::Report& report, Output& out) {
  const simulate::LogReport& log = report.log;
  std::string text;
  for (const auto& [name, format] : log.files) text += (text.empty() ? "" : ", ") + name + " (" + format + ")";
  text += ": " + grouped(log.lines) + " lines";
  if (log.skipped() > 0) text += ", " + grouped(log.skipped()) + " skipped";
  if (log.first) text += ", " + print_instant(*log.first) + " to " + print_instant(*log.last);
  out.write(text + "\n");
}

void print_totals(const simulate::PolicyReport& policy, Output& out) {
  std::string text = policy.name + ": " + grouped(policy.allowed) + " allowed, " + grouped(policy.denied) +
                     " denied (" + percent(policy.denied, policy.allowed + policy.denied) + ")";
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) text += ", " + grouped(count) + " " + std::string(what);
  };
  add(policy.unjudged, "not judged");
  add(policy.refused, "refused (400)");
  add(policy.allow_listed, "allow-listed");
  add(policy.deny_listed, "deny-listed");
  add(policy.blocks, "automatic blocks");
  add(policy.forgotten, "buckets forgotten before they were full (raise --clients)");
  out.write(text + "\n");
}

void print_limits(const simulate::PolicyReport& policy, Output& out) {
  Table limits({"LIMIT", "KEY", "MODE", "NUMBERS", "ALLOWED", "DENIED", "SHADOW", "SHARE", "CLIENTS", "HIT"});
  limits.numbers({"ALLOWED", "DENIED", "SHADOW", "SHARE", "CLIENTS", "HIT"}).whole({"NUMBERS"});
  for (const simulate::LimitReport& limit : policy.limits) {
    const std::string numbers = limit.numbers ? simulate::rate_text(*limit.numbers) : "";
    const std::string mode = limit.mode == "enforce" ? "" : limit.mode;
    if (!limit.judged) {
      limits.add({limit.name, limit.key, mode, "not judged", "", "", "", "", "", ""});
      continue;
    }
    const std::uint64_t denied = limit.denied + limit.shadow_denied;
    limits.add({limit.name, limit.key, mode, numbers, std::to_string(limit.allowed), std::to_string(limit.denied),
                limit.shadow_denied > 0 ? std::to_string(limit.shadow_denied) : "",
                percent(denied, limit.allowed + denied), std::to_string(limit.clients),
                std::to_string(limit.clients_denied)});
  }
  print_table("Limits", limits, out);
  Table routes({"ROUTE", "ALLOWED", "DENIED", "SHARE"});
  routes.numbers({"ALLOWED", "DENIED", "SHARE"});
  for (const simulate::RouteReport& route : policy.routes) {
    routes.add({route.name, std::to_string(route.allowed), std::to_string(route.denied),
                percent(route.denied, route.allowed + route.denied)});
  }
  print_table("Routes", routes, out);
}

void print_clients(std::string_view title, const std::vector<simulate::HitClient>& clients, Output& out) {
  Table table({"CLIENT", "LIMIT", "DENIED", "ALLOWED", "FIRST DENIED", "LAST DENIED"});
  table.numbers({"DENIED", "ALLOWED"}).whole({"FIRST DENIED", "LAST DENIED"});
  // "11-18 09:00:03": the first line of the report has the year.
  const auto second = [](Wall instant) {
    const std::string text = print_instant(std::chrono::floor<std::chrono::seconds>(instant));
    return text.substr(5, 5) + " " + text.substr(11, 8);
  };
  for (const simulate::HitClient& client : clients) {
    table.add({client.identifier, client.limit, std::to_string(client.counts.denied),
               std::to_string(client.counts.allowed), second(client.first_denied), second(client.last_denied)});
  }
  print_table(title, table, out);
}

void print_advice(const simulate::Report& report, Output& out) {
  Table table({"LIMIT", "SMALLEST BURST", "SMALLEST RATE", "NOTE"});
  table.whole({"SMALLEST BURST", "SMALLEST RATE"});
  const auto text = [](const std::optional<simulate::Advice::Found>& found) {
    return found ? simulate::rate_text(found->limit) : std::string("none is enough");
  };
  for (const simulate::LimitReport& limit : report.policy.limits) {
    const simulate::Advice& advice = limit.advice;
    if (advice.requests == 0) continue;
    const bool none = !advice.none.empty();
    table.add({limit.name, none ? "" : text(advice.burst), none ? "" : text(advice.rate), advice.none});
  }
  std::string share = std::to_string(report.tolerated_percent);
  share.erase(share.find_last_not_of('0') + 1);
  if (share.ends_with('.')) share.pop_back();
  print_table(report.tolerated_percent > 0 ? "Numbers that deny at most " + share + " % of a limit's requests"
                                           : "Numbers that deny nobody",
              table, out);
}

}  // namespace

void print_tables(const simulate::Report& report, Output& out) {
  print_log(report, out);
  print_totals(report.policy, out);
  print_limits(report.policy, out);
  std::vector<simulate::HitClient> hit;
  for (const simulate::LimitReport& limit : report.policy.limits) {
    hit.insert(hit.end(), limit.hit.begin(), limit.hit.end());
    if (limit.rest.clients == 0) continue;
    out.write("\n" + limit.name + ": " + grouped(limit.rest.clients) + " clients are summed, not listed: " +
              grouped(limit.rest.counts.allowed) + " allowed, " + grouped(limit.rest.counts.denied) + " denied\n");
  }
  print_clients("Who would have been hit", hit, out);
  print_advice(report, out);
  if (!report.comparison) return;
  const simulate::Comparison& comparison = *report.comparison;
  out.write("\n");
  print_totals(comparison.other, out);
  print_limits(comparison.other, out);
  out.write("\n" + grouped(comparison.newly_denied_clients) + " clients newly denied, " +
            grouped(comparison.spared_clients) + " no longer\n");
  print_clients("Newly denied by " + comparison.other.name, comparison.newly_denied, out);
  print_clients("No longer denied", comparison.spared, out);
}

void print_csv(const simulate::Report& report, Output& out) {
  Table rows({"CONFIG", "LIMIT", "KEY", "MODE", "JUDGED", "BURST", "COUNT", "PERIOD", "ALLOWED", "DENIED",
              "SHADOW_DENIED", "CLIENTS", "CLIENTS_DENIED", "ADVISED_BURST", "ADVISED_COUNT", "ADVISED_PERIOD"});
  const auto add = [&](const simulate::PolicyReport& policy) {
    for (const simulate::LimitReport& limit : policy.limits) {
      const std::optional<Limit>& numbers = limit.numbers;
      const std::optional<simulate::Advice::Found>& burst = limit.advice.burst;
      const std::optional<simulate::Advice::Found>& rate = limit.advice.rate;
      rows.add({policy.name, limit.name, limit.key, limit.mode, limit.judged ? "true" : "false",
                numbers ? std::to_string(numbers->burst()) : "", numbers ? std::to_string(numbers->count()) : "",
                numbers ? print_duration(numbers->period()) : "", std::to_string(limit.allowed),
                std::to_string(limit.denied), std::to_string(limit.shadow_denied), std::to_string(limit.clients),
                std::to_string(limit.clients_denied), burst ? std::to_string(burst->limit.burst()) : "",
                rate ? std::to_string(rate->limit.count()) : "", rate ? print_duration(rate->limit.period()) : ""});
    }
  };
  add(report.policy);
  if (report.comparison) add(report.comparison->other);
  rows.print_csv(out);
}

}  // namespace weir::cli
