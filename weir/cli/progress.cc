#include "weir/cli/progress.h"

#include <algorithm>

#include "weir/cli/text_width.h"
#include "weir/simulate/report_html.h"

namespace weir::cli {
namespace {

constexpr std::size_t kBarColumns = 40;
constexpr std::size_t kBarColumnsMin = 10;

}  // namespace

std::string progress_line(std::string_view unit, std::uint64_t units, std::size_t done, std::size_t all,
                          std::size_t columns) {
  const std::string count = simulate::grouped(units) + " " + std::string(unit) + (units == 1 ? "" : "s");
  if (all == 0) return clipped(count, columns);
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
  const std::string percent = std::to_string(static_cast<int>(share * 100));
  const std::string rest =
      "]" + std::string(4 - std::min<std::size_t>(4, percent.size()), ' ') + percent + " %  " + count;
  if (columns < rest.size() + 1 + kBarColumnsMin) return clipped(rest.substr(rest.find_first_not_of("] ")), columns);
  const std::size_t bar = std::min(kBarColumns, columns - rest.size() - 1);
  const auto full = static_cast<std::size_t>(share * static_cast<double>(bar));
  std::string text = "[" + std::string(full, '=');
  if (full < bar) text += ">" + std::string(bar - full - 1, ' ');
  return text + rest;
}

Progress::~Progress() {
  if (!drawn_) return;
  err_.write("\r\x1b[K");
  err_.flush();
}

void Progress::update(std::uint64_t units, std::size_t done) {
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds{200};
  drawn_ = true;
  const std::size_t columns = err_.size().columns;
  // The last column stays free: a cursor behind it may be on the next line.
  err_.write("\r\x1b[K" + progress_line(unit_, units, done, all_, columns == 0 ? 79 : columns - 1));
  err_.flush();
}

}  // namespace weir::cli
