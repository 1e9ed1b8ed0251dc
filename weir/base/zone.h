// A time zone: how far local clocks are from UTC, at any instant. Reads the system's TZif files (RFC 8536) because the
// standard library of g++ 12 has no time zones. Loading is for configuration; asking is pure and allocates nothing.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir {

// A clock on the wall of that zone: date and time of day without an offset.
using Local = std::chrono::local_seconds;

// Part of the timeline between two changes of the clocks: [start, end), cut to the range of Wall. Two spans in a row
// may have the same offset.
struct ZoneSpan {
  Wall start;
  Wall end;
  std::chrono::seconds offset;  // what local clocks add to UTC: east is positive
};

// Immutable and cheap to copy; copies share their rules, so any thread may use one.
class Zone {
 public:
  // UTC, without any file.
  Zone() noexcept = default;

  // "Europe/London", from $TZDIR or /usr/share/zoneinfo. The Error names the zone and what is wrong with it.
  static Result<Zone> load(std::string_view name);

  // The same from the bytes of a file; `name` only names it. Bytes may be hostile: they are checked before use.
  static Result<Zone> parse(std::string_view name, std::string_view bytes);

  std::string_view name() const noexcept;

  // The span that holds that instant.
  ZoneSpan span_at(Wall wall) const noexcept;

  // Its offset alone.
  std::chrono::seconds offset_at(Wall wall) const noexcept;

  // What local clocks show, in whole seconds.
  Local to_local(Wall wall) const noexcept;

  // The first instant at which local clocks show `local` or later. So a time that exists twice is its first occurrence,
  // one that the clocks skip is the instant after the gap, and a later local time never gives an earlier instant.
  // Beyond the range of Wall (years 1677 to 2262) the result is the range's end.
  Wall to_wall(Local local) const noexcept;

 private:
  struct Rules;
  explicit Zone(std::shared_ptr<const Rules> rules) noexcept : rules_(std::move(rules)) {}

  std::shared_ptr<const Rules> rules_;  // null: UTC
};

}  // namespace weir
