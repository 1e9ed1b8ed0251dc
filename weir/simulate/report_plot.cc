#include "weir/simulate/report_plot.h"

#include <algorithm>
#include <cmath>

#include "weir/base/text.h"
#include "weir/simulate/report_html.h"

namespace weir::simulate {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 200;
constexpr double kLeft = 56;
constexpr double kBottom = 24;
constexpr double kTop = 10;

// At most two decimals: a page has thousands of coordinates.
std::string coordinate(double value) {
  std::string text = std::to_string(std::round(value * 100) / 100);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string rectangle(const char* kind, double x, double y, double width, double height) {
  return std::string("<rect class=\"") + kind + "\" x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" width=\"" +
         coordinate(width) + "\" height=\"" + coordinate(height) + "\"/>";
}

// Returns a round number that is not below the value.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(std::max(value, 1e-9))));
  for (const double factor : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0}) {
    if (factor * power >= value) return factor * power;
  }
  return value;
}

// Formats a rate with no more digits than it needs.
std::string rate_label(double rate) {
  return rate >= 10 ? grouped(static_cast<std::uint64_t>(rate)) : coordinate(rate);
}

// "05:26" on one day, "11-18 05:26" on several.
std::string time_label(Wall wall, Duration all) {
  const std::string text = print_instant(wall);
  if (all < std::chrono::minutes{10}) return text.substr(11, 8);
  return all < std::chrono::hours{24} ? text.substr(11, 5) : text.substr(5, 5) + " " + text.substr(11, 5);
}

}  // namespace

std::string plot(const Timeline& timeline, const std::string& label) {
  const std::vector<Timeline::Column>& columns = timeline.columns();
  if (columns.empty()) return {};
  const double seconds = std::chrono::duration<double>(timeline.width()).count();
  std::uint64_t most = 1;
  for (const Timeline::Column& column : columns) most = std::max(most, column.allowed + column.denied);
  const double top = round_up(static_cast<double>(most) / seconds);
  const double scale = (kHeight - kTop - kBottom) / (top * seconds);
  const double step = (kWidth - kLeft) / static_cast<double>(columns.size());
  const double floor = kHeight - kBottom;
  const Duration all = timeline.width() * static_cast<std::int64_t>(columns.size());

  std::string svg = "<svg viewBox=\"0 0 960 200\" role=\"img\" aria-label=\"" + label + "\">";
  for (int line = 0; line <= 2; ++line) {
    const double y = floor - (kHeight - kTop - kBottom) * line / 2;
    svg += "<line class=\"grid\" x1=\"56\" x2=\"960\" y1=\"" + coordinate(y) + "\" y2=\"" + coordinate(y) + "\"/>";
    svg +=
        "<text x=\"48\" y=\"" + coordinate(y + 4) + "\" text-anchor=\"end\">" + rate_label(top * line / 2) + "</text>";
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto [allowed, denied] = columns[i];
    if (allowed + denied == 0) continue;
    const double x = kLeft + step * static_cast<double>(i);
    const double width = step > 3 ? step - 1 : step;
    const double low = static_cast<double>(allowed) * scale;
    // Even the smallest number of denials stays visible.
    const double high = denied == 0 ? 0 : std::max(static_cast<double>(denied) * scale, 1.5);
    const Wall at = timeline.start() + timeline.width() * static_cast<std::int64_t>(i);
    svg +=
        "<g><title>" + print_instant(at) + ": " + grouped(allowed) + " allowed, " + grouped(denied) + " denied</title>";
    if (allowed > 0) svg += rectangle("allowed", x, floor - low, width, low);
    if (denied > 0) svg += rectangle("denied", x, floor - low - high, width, high);
    svg += "</g>";
  }
  for (int mark = 0; mark <= 4; ++mark) {
    const char* const anchor = mark == 0 ? "start" : mark == 4 ? "end" : "middle";
    const double x = kLeft + (kWidth - kLeft) * mark / 4;
    svg += "<text x=\"" + coordinate(x) + "\" y=\"196\" text-anchor=\"" + anchor + "\">" +
           time_label(timeline.start() + all * mark / 4, all) + "</text>";
  }
  return svg + "</svg>";
}

}  // namespace weir::simulate
