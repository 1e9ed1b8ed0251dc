#include "weir/algorithm/calendar.h"

namespace weir {
namespace {

using namespace std::chrono;

constexpr Wall kFirst = sys_days{year{1800} / January / 1};
constexpr Wall kLast = sys_days{year{2200} / January / 1};

// Returns the number of the day, week or month that contains a local time.
std::int64_t number_of(Calendar calendar, Local local) noexcept {
  const local_days day = floor<days>(local);
  if (calendar == Calendar::day) return day.time_since_epoch().count();
  // 1970 began on a Thursday: three days after the Monday of week 0.
  if (calendar == Calendar::week) return floor<weeks>(day.time_since_epoch() + days{3}).count();
  const year_month_day date{day};
  return std::int64_t{int{date.year()}} * 12 + static_cast<std::int64_t>(unsigned{date.month()}) - 1;
}

Local beginning_of(Calendar calendar, std::int64_t number) noexcept {
  if (calendar == Calendar::day) return local_days{days{number}};
  if (calendar == Calendar::week) return local_days{days{7 * number - 3}};
  const year_month month = year{0} / January + months{number};
  return local_days{month / 1};
}

// Returns the window before rounding. A later local time never gives an earlier instant, so windows have no gaps or
// overlaps. If the clocks skip a whole day, its window is empty and the search skips it.
Window exact_window(Calendar calendar, const Zone& zone, Wall now) noexcept {
  if (calendar == Calendar::hour) {
    const ZoneSpan span = zone.span_at(now);
    const Wall hour = floor<hours>(now + span.offset) - span.offset;
    return {std::max(hour, span.start), std::min<Wall>(hour + hours{1}, span.end)};
  }
  const auto start_of = [&](std::int64_t number) { return zone.to_wall(beginning_of(calendar, number)); };
  std::int64_t number = number_of(calendar, zone.to_local(now));
  while (start_of(number) > now) --number;
  while (start_of(number + 1) <= now) ++number;
  return {start_of(number), start_of(number + 1)};
}

}  // namespace

Window window_of(Calendar calendar, const Zone& zone, Wall now) noexcept {
  now = std::clamp(now, kFirst, kLast);
  Window window = exact_window(calendar, zone, now);
  // The seconds before a rounded-up start belong to the previous window.
  while (ceil<minutes>(window.start) > now) window = exact_window(calendar, zone, window.start - Duration{1});
  return {ceil<minutes>(window.start), ceil<minutes>(window.end)};
}

Quota quota_at(Count size, Calendar calendar, const Zone& zone, Wall now) noexcept {
  const Window window = window_of(calendar, zone, now);
  return {size, window, window_of(calendar, zone, window.end).end};
}

Quota quota_at(Count size, Duration every, Wall now) noexcept {
  const Wall start{(std::clamp(now, Wall{}, kLast).time_since_epoch() / every) * every};
  return {size, {start, start + every}, start + 2 * every, every};
}

}  // namespace weir
