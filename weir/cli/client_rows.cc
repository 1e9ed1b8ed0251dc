#include "weir/cli/client_rows.h"

#include "weir/base/printable.h"
#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/text_width.h"
#include "weir/simulate/report_html.h"

namespace weir::cli {
namespace {

constexpr const char* kFields[] = {
    "limit",  "id",        "identifier",  "bucket",  "tier",   "burst",         "count",      "period",
    "source", "remaining", "reset_after", "allowed", "denied", "shadow_denied", "first_seen", "last_seen"};

// "2026-11-15T14:07:31.120Z (2s ago)".
std::string with_distance(const std::string& instant, Wall now) {
  const std::string distance = relative_time(instant, now);
  return printable(instant) + (distance.empty() ? "" : " (" + distance + ")");
}

// "3 of 20, full in 170ms".
std::string level_text(const Answer& level) {
  const std::string& remaining = level["remaining"].text();
  if (remaining.empty()) return {};
  if (remaining == "-1") return "unlimited";
  std::string text = printable(remaining);
  if (!level["burst"].text().empty()) text += " of " + printable(level["burst"].text());
  const std::string full = readable_seconds(level["reset_after"]);
  if (level["reset_after"].number() > 0) text += ", full in " + full;
  return text;
}

}  // namespace

Table client_table() {
  Table table({"LIMIT", "ID", "LEFT", "BURST", "RATE", "SOURCE", "ALLOWED", "DENIED", "SHADOW", "SEEN"});
  table.numbers({"LEFT", "BURST", "ALLOWED", "DENIED", "SHADOW"}).whole({"RATE", "SEEN"});
  return table;
}

std::vector<std::string> client_cells(const Answer& row, Wall now) {
  const std::string& source = row["source"].text();
  const std::string& tier = row["tier"].text();
  const std::string& shadow = row["shadow_denied"].text();
  return {limit_cell(row),
          row["id"].text(),
          row["remaining"].text() == "-1" ? "unlimited" : row["remaining"].text(),
          row["burst"].text(),
          readable_rate(row),
          source == "limit" ? ""
          : tier.empty()    ? source
                            : source + " " + tier,  // the limit's own go without saying
          row["allowed"].text(),
          row["denied"].text(),
          shadow == "0" ? "" : shadow,
          relative_time(row["last_seen"].text(), now)};
}

Table client_fields_table() {
  return Table({std::begin(kFields), std::end(kFields)});
}

std::vector<std::string> client_fields(const Answer& row) {
  std::vector<std::string> cells;
  for (const char* const field : kFields) cells.push_back(row[field].text());
  return cells;
}

void print_client(const Answer& client, Wall now, Output& out) {
  constexpr std::size_t kNameColumns = 14;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    out.write(std::string(name) + std::string(kNameColumns - name.size(), ' ') + value + "\n");
  };
  out.write(out.painted(Paint::bold, printable(client["identifier"].text())) + "\n");
  line("limit", printable(client["limit"].text()));
  line("id", printable(client["id"].text()));
  const std::string rate = readable_rate(client);
  line("numbers", rate.empty() ? "" : printable(rate) + ", burst " + printable(client["burst"].text()));
  line("source", printable(client["source"].text()) +
                     (client["tier"].text().empty() ? "" : " " + printable(client["tier"].text())));
  line("remaining", level_text(client));
  if (client["rate"].is(Answer::Kind::object) && client["quota"].is(Answer::Kind::object)) {
    line("rate left", level_text(client["rate"]));
    line("quota left", level_text(client["quota"]));
  }
  line("allowed", client["allowed"].text().empty() ? "" : simulate::grouped(client["allowed"].count()));
  line("denied", client["denied"].text().empty() ? "" : simulate::grouped(client["denied"].count()));
  line("shadow denied", client["shadow_denied"].count() == 0 ? "" : simulate::grouped(client["shadow_denied"].count()));
  line("first seen", with_distance(client["first_seen"].text(), now));
  line("last seen", with_distance(client["last_seen"].text(), now));
  std::string_view name = "last denials";
  for (const Answer& denial : client["last_denials"].items()) {
    line(name, with_distance(denial.text(), now));
    name = "";
  }
  const Answer& block = client["block"];
  if (!block.is(Answer::Kind::object)) return;
  std::string why = printable(block["reason"].text());
  if (!block["expires"].text().empty()) why += ", until " + with_distance(block["expires"].text(), now);
  why += ", added by " + printable(block["added_by"].text());
  line("denied by", out.painted(Paint::red, "deny list") + ": " + why);
}

}  // namespace weir::cli
