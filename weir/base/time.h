// Time is an argument. Decisions use Time, a point on our own timeline that never steps; calendars and headers use
// Wall. They are different types, so that they cannot be mixed by accident. Code that needs both takes a Now.
#pragma once

#include <chrono>

namespace weir {

using Duration = std::chrono::nanoseconds;

// The timeline of buckets: CLOCK_BOOTTIME plus an offset chosen when the state is opened, so that it continues from the
// saved state and never goes backward. It has no now(): a Clock (base/clock.h) is read once per batch and the reading
// is passed down.
struct Timeline {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Timeline, Duration>;
  static constexpr bool is_steady = true;
};

// Never negative: zero is the start of the state. A bucket whose TAT is Time{} is full.
using Time = Timeline::time_point;

// Nanoseconds since 1970 in UTC. May step either way.
using Wall = std::chrono::sys_time<Duration>;

// One reading of both clocks.
struct Now {
  Time time;
  Wall wall;
};

// Rounds up, so that a client that waits this long never returns too early.
constexpr std::chrono::seconds ceil_seconds(Duration d) noexcept {
  return std::chrono::ceil<std::chrono::seconds>(d);
}

}  // namespace weir
