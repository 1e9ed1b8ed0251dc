#include "weir/simulate/report_html.h"

#include <cstdio>

#include "weir/base/text.h"
#include "weir/simulate/report_plot.h"

namespace weir::simulate {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>Weir: replay</title>
<style>
:root {
  --page: #f6f7f9; --card: #fff; --text: #1b2430; --dim: #5b6675; --line: #dfe3e8;
  --allowed: #2f7ebc; --denied: #d1432f; --good: #1f7a4d; --warn: #8a5a00; --warn-page: #fff5dc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #11161d; --card: #19212b; --text: #e4e9ef; --dim: #98a4b3; --line: #2c3744;
    --allowed: #4d9bd8; --denied: #ee6a55; --good: #5dc28f; --warn: #e8c170; --warn-page: #2b2415;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 18px; margin: 0; }
h3 { font-size: 13px; margin: 20px 0 6px; color: var(--dim); text-transform: uppercase; letter-spacing: .05em; }
p { margin: 6px 0; }
.dim { color: var(--dim); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px; margin-top: 18px; }
.row { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: baseline; justify-content: space-between; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 14px; margin-top: 18px; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; }
.fact b { display: block; font-size: 24px; font-weight: 650; font-variant-numeric: tabular-nums; }
.bad b, .bad { color: var(--denied); }
.good { color: var(--good); }
.warn { background: var(--warn-page); color: var(--warn); border-color: currentColor; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--dim); font-weight: 500; font-size: 13px; }
td.n, th.n { text-align: right; }
th.n + th:not(.n), td.n + td:not(.n) { padding-left: 20px; }
tr:last-child td { border-bottom: 0; }
code { font: 13px/1.4 ui-monospace, monospace; }
svg { display: block; width: 100%; height: auto; margin-top: 12px; }
svg text { font: 11px system-ui, sans-serif; fill: var(--dim); }
.grid { stroke: var(--line); }
.allowed { fill: var(--allowed); }
.denied { fill: var(--denied); }
.legend { font-size: 13px; color: var(--dim); }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 4px 0 12px; }
@media print { body { background: none; } .card, .fact { break-inside: avoid; } }
</style>
</head>
<body>
<main>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string fact(std::string_view name, const std::string& value, const char* kind = "") {
  return std::string("<div class=\"fact ") + kind + "\"><b>" + value + "</b><span class=\"dim\">" + std::string(name) +
         "</span></div>\n";
}

std::string cell(const std::string& text, bool number = false) {
  return std::string(number ? "<td class=\"n\">" : "<td>") + text + "</td>";
}

std::string clients_table(const std::vector<HitClient>& clients) {
  std::string out =
      "<div class=\"scroll\"><table><tr><th>client</th><th class=\"n\">denied</th><th class=\"n\">allowed</th>"
      "<th>first denied</th><th>last denied</th></tr>\n";
  for (const HitClient& client : clients) {
    out += "<tr>" + cell("<code>" + escaped(client.identifier) + "</code>") +
           cell(grouped(client.counts.denied), true) + cell(grouped(client.counts.allowed), true) +
           cell(print_instant(client.first_denied)) + cell(print_instant(client.last_denied)) + "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string advice_text(const Advice& advice, double tolerated) {
  if (advice.requests == 0) return {};
  if (!advice.none.empty()) return "<p class=\"dim\">No advice: " + escaped(advice.none) + ".</p>\n";
  const std::string whom =
      tolerated > 0 ? "at most " + grouped(advice.tolerated) + " of " + grouped(advice.requests) + " requests"
                    : "nobody";
  const auto row = [&](std::string_view what, const std::optional<Advice::Found>& found) {
    const std::string numbers = found ? "<code>" + rate_text(found->limit) + "</code>" : "none is enough";
    return "<tr>" + cell(std::string(what)) + cell(numbers) + cell(found ? grouped(found->denied) : "", true) +
           "</tr>\n";
  };
  return "<h3>Numbers that deny " + whom +
         "</h3>\n<div class=\"scroll\"><table><tr><th></th><th>numbers</th><th class=\"n\">denied</th></tr>\n" +
         row("smallest burst at this rate", advice.burst) + row("smallest rate at this burst", advice.rate) +
         "</table></div>\n";
}

std::string limit_card(const LimitReport& limit, double tolerated) {
  std::string out = "<section class=\"card\"><div class=\"row\"><h2>" + escaped(limit.name) +
                    "</h2><span class=\"dim\">" + escaped(limit.key) +
                    (limit.numbers ? " · " + rate_text(*limit.numbers) : "") +
                    (limit.mode == "enforce" ? "" : " · " + limit.mode) + "</span></div>\n";
  if (!limit.judged) return out + "<p class=\"dim\">Not judged: the log lacks its key.</p></section>\n";
  const std::uint64_t denied = limit.denied + limit.shadow_denied;
  const std::uint64_t all = limit.allowed + denied;
  if (all == 0) return out + "<p class=\"dim\">No request was counted.</p></section>\n";
  out += "<p>" + grouped(limit.allowed) + " allowed, <span class=\"" + (denied > 0 ? "bad" : "good") + "\">" +
         grouped(denied) + (limit.mode == "shadow" ? " would be denied" : " denied") + "</span> (" +
         escaped(percent(denied, all)) + ") · " + grouped(limit.clients_denied) + " of " + grouped(limit.clients) +
         " clients hit</p>\n";
  if (limit.rest.clients > 0) {
    out += "<p class=\"dim\">" + grouped(limit.rest.clients) +
           " clients are summed, not listed: " + grouped(limit.rest.counts.allowed) + " allowed, " +
           grouped(limit.rest.counts.denied) + " denied.</p>\n";
  }
  out += plot(limit.timeline, "Requests per second of " + escaped(limit.name));
  if (!limit.hit.empty()) out += "<h3>Who would have been hit</h3>\n" + clients_table(limit.hit);
  return out + advice_text(limit.advice, tolerated) + "</section>\n";
}

std::string lacks_card(const PolicyReport& policy) {
  std::string items;
  for (const Lack& lack : policy.lacks) items += "<p>" + escaped(sentence(lack)) + ".</p>\n";
  return items.empty() ? items : "<section class=\"card warn\"><h2>What the log lacks</h2>\n" + items + "</section>\n";
}

std::string skipped_card(const LogReport& log) {
  if (log.skipped() == 0) return {};
  std::string out = "<section class=\"card\"><h2>Skipped lines</h2><p>" + grouped(log.malformed) + " malformed, " +
                    grouped(log.late) + " too late.</p>\n";
  for (const LogReport::Malformed& line : log.shown) {
    out += "<p class=\"dim\"><code>" + escaped(line.file) + ":" + std::to_string(line.line) + "</code> " +
           escaped(line.reason) + "</p>\n";
  }
  return out + "</section>\n";
}

std::string routes_card(const PolicyReport& policy) {
  if (policy.routes.empty()) return {};
  std::string out =
      "<section class=\"card\"><h2>Routes</h2><div class=\"scroll\"><table><tr><th>route</th>"
      "<th class=\"n\">allowed</th><th class=\"n\">denied</th><th class=\"n\">share</th></tr>\n";
  for (const RouteReport& route : policy.routes) {
    out += "<tr>" + cell(escaped(route.name)) + cell(grouped(route.allowed), true) + cell(grouped(route.denied), true) +
           cell(escaped(percent(route.denied, route.allowed + route.denied)), true) + "</tr>\n";
  }
  return out + "</table></div></section>\n";
}

std::string comparison_card(const PolicyReport& first, const Comparison& comparison) {
  const PolicyReport& other = comparison.other;
  const auto row = [](const PolicyReport& policy) {
    return "<tr>" + cell("<code>" + escaped(policy.name) + "</code>") + cell(grouped(policy.allowed), true) +
           cell(grouped(policy.denied), true) +
           cell(escaped(percent(policy.denied, policy.allowed + policy.denied)), true) + "</tr>\n";
  };
  std::string out =
      "<section class=\"card\"><h2>Comparison</h2><div class=\"scroll\"><table><tr><th>configuration</th>"
      "<th class=\"n\">allowed</th><th class=\"n\">denied</th><th class=\"n\">share</th></tr>\n" +
      row(first) + row(other) + "</table></div>\n";
  out += "<p>" + grouped(comparison.newly_denied_clients) + " clients would be newly denied, " +
         grouped(comparison.spared_clients) + " no longer.</p>\n";
  if (!comparison.newly_denied.empty()) out += "<h3>Newly denied</h3>\n" + clients_table(comparison.newly_denied);
  if (!comparison.spared.empty()) out += "<h3>No longer denied</h3>\n" + clients_table(comparison.spared);
  return out + "</section>\n";
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  const double share = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (share < 0.01) return "<0.01 %";
  char text[32];
  std::snprintf(text, sizeof text, share < 1 ? "%.2f %%" : "%.1f %%", share);
  return text;
}

std::string rate_text(const Limit& limit) {
  const bool plain = limit.period() == std::chrono::seconds{1};
  return std::to_string(limit.count()) + (plain ? "/s" : " per " + print_duration(limit.period())) + ", burst " +
         std::to_string(limit.burst());
}

std::string write_html(const Report& report) {
  const PolicyReport& policy = report.policy;
  std::string out(kHead);
  out += "<h1>What " + escaped(policy.name) + " would have done</h1>\n<p class=\"dim\">";
  for (const auto& [name, format] : report.log.files) out += escaped(name) + " (" + escaped(format) + ") ";
  if (report.log.first) out += "· " + print_instant(*report.log.first) + " to " + print_instant(*report.log.last);
  out += "</p>\n<div class=\"facts\">";
  out += fact("lines", grouped(report.log.lines)) + fact("requests", grouped(policy.requests));
  out += fact("allowed", grouped(policy.allowed));
  out += fact("denied (" + escaped(percent(policy.denied, policy.allowed + policy.denied)) + ")",
              grouped(policy.denied), policy.denied > 0 ? "bad" : "");
  if (report.log.skipped() > 0) out += fact("lines skipped", grouped(report.log.skipped()));
  if (policy.unjudged > 0) out += fact("not judged", grouped(policy.unjudged));
  if (policy.refused > 0) out += fact("refused (400)", grouped(policy.refused));
  if (policy.deny_listed > 0) out += fact("deny-listed", grouped(policy.deny_listed));
  if (policy.blocks > 0) out += fact("automatic blocks", grouped(policy.blocks));
  if (policy.forgotten > 0) out += fact("buckets forgotten: raise --clients", grouped(policy.forgotten));
  out += "</div>\n" + lacks_card(policy);
  out +=
      "<section class=\"card\"><div class=\"row\"><h2>Requests per second</h2><span class=\"legend\">"
      "<i style=\"background:var(--allowed)\"></i>allowed<i "
      "style=\"background:var(--denied)\"></i>denied</span></div>" +
      plot(policy.timeline, "Requests per second, allowed and denied") + "</section>\n";
  if (report.comparison) out += comparison_card(policy, *report.comparison);
  for (const LimitReport& limit : policy.limits) out += limit_card(limit, report.tolerated_percent);
  out += routes_card(policy) + skipped_card(report.log);
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace weir::simulate
