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

const ScheduleEntry* find_entry(const Schedule& schedule, Wall wall) noexcept {
  const auto found =
      std::find_if(schedule.begin(), schedule.end(), [&](const ScheduleEntry& entry) { return entry.covers(wall); });
  return found == schedule.end() ? nullptr : &*found;
}

}  // namespace weir
