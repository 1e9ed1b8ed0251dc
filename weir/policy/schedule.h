// Other numbers at certain hours on certain days. The first entry that matches wins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.h"
#include "weir/base/zone.h"
#include "weir/core/limit.h"

namespace weir {

// Minutes of the day, [from, to). They cross midnight when to <= from.
struct Hours {
  int from = 0;
  int to = 24 * 60;

  friend constexpr bool operator==(const Hours&, const Hours&) = default;
};

struct ScheduleEntry {
  std::uint8_t days = 0x7f;  // bit 0 is Sunday
  Hours hours;
  Zone zone;
  Limit numbers = Limit::per_second(1);

  // Days and hours are those of the zone. Hours that cross midnight belong to the day they began on: "fri 22:00-06:00"
  // ends on Saturday morning.
  bool covers(Wall wall) const noexcept;
};

using Schedule = std::vector<ScheduleEntry>;

// Null if no entry covers the instant.
const ScheduleEntry* find_entry(const Schedule& schedule, Wall wall) noexcept;

// Returns the latest instant, not after `wall`, at which an entry began or ended or its zone changed its UTC offset.
// From then until `wall`, find_entry() returns the same entry. Wall::min() for an empty schedule.
Wall last_change(const Schedule& schedule, Wall wall) noexcept;

}  // namespace weir
