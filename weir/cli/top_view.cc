#include "weir/cli/top_view.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "weir/base/printable.h"
#include "weir/base/text.h"
#include "weir/cli/admin_api.h"
#include "weir/cli/text_width.h"
#include "weir/simulate/report_html.h"

namespace weir::cli {
namespace {

std::string count_head(std::string_view by) {
  return by == "denied" ? "DENIED" : by == "shadow_denied" ? "SHADOW_DENIED" : "REQUESTS";
}

// "0", "0.5", "12", "3400": a decimal only where it says something.
std::string rate_text(std::uint64_t now, std::uint64_t before, Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds <= 0 || now < before) return {};
  const double rate = static_cast<double>(now - before) / seconds;
  if (rate == 0 || rate >= 9.95) return std::to_string(std::llround(rate));
  const std::string tenths = std::to_string(std::max<std::int64_t>(1, std::llround(rate * 10)));
  return tenths.size() == 1 ? "0." + tenths : tenths.substr(0, 1) + "." + tenths.substr(1);
}

// Left and right of one row, if both fit.
std::string two_ends(const std::string& left, const std::string& right, std::size_t columns) {
  const std::size_t used = text_width(left) + text_width(right);
  if (used + 2 > columns) return clipped(left, columns);
  return left + std::string(columns - used, ' ') + right;
}

}  // namespace

Table top_table(std::string_view by, bool with_rates) {
  std::vector<std::string> heads{"LIMIT", "ID", count_head(by)};
  if (with_rates) heads.emplace_back("PER_SECOND");
  heads.emplace_back("ERROR");
  Table table(std::move(heads));
  table.numbers({"REQUESTS", "DENIED", "SHADOW_DENIED", "PER_SECOND", "ERROR"});
  return table;
}

void TopView::take(const Answer& top, const Answer& stats, Time now, Wall wall) {
  const Duration time = now - looked_;
  const bool known = !last_.empty();
  by_ = top["by"].text();
  rows_.clear();
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
  for (const Answer& client : top["clients"].items()) {
    const std::uint64_t count = client["count"].count();
    const auto key = std::pair(client["limit"].text(), client["id"].text());
    const auto before = last_.find(key);
    // A client that is new in the list has no earlier count.
    const std::string rate = before == last_.end() ? std::string() : rate_text(count, before->second, time);
    rows_.push_back({limit_cell(client), key.second, client["count"].text(), rate, client["error"].text()});
    counts.emplace(key, count);
  }
  const Answer& totals = stats["totals"];
  const Totals next{totals["requests"].count(), totals["denied"].count() + totals["deny_listed"].count()};
  requests_per_second_ = known ? rate_text(next.requests, totals_.requests, time) : "";
  denied_per_second_ = known ? rate_text(next.denied, totals_.denied, time) : "";
  totals_ = next;
  last_ = std::move(counts);
  looked_ = now;
  uptime_ = print_duration(std::chrono::seconds{static_cast<std::int64_t>(stats["uptime_seconds"].number())});
  store_ = printable(stats["store"]["kind"].text());
  store_down_ = stats["store"]["up"].is(Answer::Kind::boolean) && !stats["store"]["up"].is_true();
  clock_ = print_instant(std::chrono::floor<std::chrono::seconds>(wall)).substr(11);
}

std::string TopView::totals_line() const {
  std::string text = simulate::grouped(totals_.requests) + " requests";
  if (!requests_per_second_.empty()) text += " (" + requests_per_second_ + "/s)";
  text += ", " + simulate::grouped(totals_.denied) + " denied";
  if (totals_.denied > 0) text += " (" + simulate::percent(totals_.denied, totals_.requests);
  if (totals_.denied > 0 && !denied_per_second_.empty()) text += ", " + denied_per_second_ + "/s";
  if (totals_.denied > 0) text += ")";
  return text + "; up " + uptime_ + ", store " + store_;
}

std::vector<std::string> TopView::lines(ScreenSize size, std::string_view url, std::string_view every, bool paused,
                                        const Output& painter) const {
  std::string words = by_;
  std::replace(words.begin(), words.end(), '_', ' ');
  const std::string title = "weir top by " + words + (paused ? ", paused  " : "  ") + std::string(url);
  std::vector<std::string> lines;
  lines.push_back(painter.painted(
      Paint::bold, two_ends(title, paused ? clock_ : "every " + std::string(every) + "  " + clock_, size.columns)));
  lines.push_back(clipped(totals_line(), size.columns));
  if (store_down_) lines.push_back(painter.painted(Paint::red, clipped("the store is unavailable", size.columns)));
  lines.emplace_back();
  Table table = top_table(by_, true);
  for (const Row& row : rows_) table.add({row.limit, row.id, row.count, row.per_second, row.error});
  if (table.empty()) lines.emplace_back(clipped("no clients yet", size.columns));
  std::vector<std::string> rows = table.lines(size.columns, Table::Narrow::drop);
  if (!rows.empty()) rows.front() = painter.painted(Paint::bold, rows.front());
  const std::size_t room = size.rows > lines.size() + 2 ? size.rows - lines.size() - 2 : 0;
  if (rows.size() > room) rows.resize(room);
  lines.insert(lines.end(), rows.begin(), rows.end());
  lines.resize(std::max<std::size_t>(size.rows, 1) - 1);
  const std::string keys = size.columns < 60 ? "q quit  r d s sort  space pause"
                                             : "q quit  r requests  d denied  s shadow denied  space pause";
  lines.push_back(painter.painted(Paint::dim, clipped(keys, size.columns)));
  return lines;
}

}  // namespace weir::cli
