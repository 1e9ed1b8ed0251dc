#include "weir/policy/schedule.h"

#include <algorithm>
#include <chrono>

namespace weir {

bool ScheduleEntry::covers(Wall wall) const noexcept {
  const Local local = zone.to_local(wall);
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const auto minute = std::chrono::floor<std::chrono::minutes>(local - day).count();
  const auto on = [&](std::chrono::local_days date) {
    return (days >> std::chrono::weekday{date}.c_encoding() & 1) != 0;
  };
  if (hours.from < hours.to) return on(day) && minute >= hours.from && minute < hours.to;
  return (on(day) && minute >= hours.from) || (on(day - std::chrono::days{1}) && minute < hours.to);
}

namespace {

Wall last_change(const ScheduleEntry& entry, Wall wall) noexcept {
  using namespace std::chrono;
  const ZoneSpan span = entry.zone.span_at(wall);
  const Local local{floor<seconds>(wall).time_since_epoch() + span.offset};
  const local_days today = floor<days>(local);
  const bool overnight = entry.hours.from >= entry.hours.to;
  Local last = Local::min();
  // Later days have later edges. Every entry has at least one day of the week, so 7 days back are enough.
  for (int back = 0; back <= 7 && last == Local::min(); ++back) {
    const local_days day = today - days{back};
    if ((entry.days >> weekday{day}.c_encoding() & 1) == 0) continue;
    const Local from = day + minutes{entry.hours.from};
    const Local to = day + minutes{entry.hours.to} + days{overnight ? 1 : 0};
    if (from <= local) last = to <= local ? to : from;
  }
  // `span` is the time since the zone last changed its offset.
  if (last == Local::min()) return span.start;
  return std::max(span.start, Wall{last.time_since_epoch() - span.offset});
}

}  // namespace

Wall last_change(const Schedule& schedule, Wall wall) noexcept {
  Wall last = Wall::min();
  for (const ScheduleEntry& entry : schedule) last = std::max(last, last_change(entry, wall));
  return last;
}

const ScheduleEntry* find_entry(const Schedule& schedule, Wall wall) noexcept {
  const auto found =
      std::find_if(schedule.begin(), schedule.end(), [&](const ScheduleEntry& entry) { return entry.covers(wall); });
  return found == schedule.end() ? nullptr : &*found;
}

}  // namespace weir
