// A time zone: the offset of local clocks from UTC at any instant. Reads the system's TZif files (RFC 8536), because
// the standard library of g++ 12 has no time zones. Load zones with the configuration; lookups are pure and allocate
// nothing.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir {

// Local date and time of day without an offset.
using Local = std::chrono::local_seconds;

// The time between two changes of the clocks: [start, end), cut to the range of Wall. Adjacent spans may have the same
// offset.
struct ZoneSpan {
  Wall start;
  Wall end;
  std::chrono::seconds offset;  // local time minus UTC: east is positive
};

// Immutable and cheap to copy; copies share their rules, so any thread may use one.
class Zone {
 public:
  // UTC; reads no file.
  Zone() noexcept = default;

  // "Europe/London", from $TZDIR or /usr/share/zoneinfo. The Error names the zone and what is wrong with it.
  static Result<Zone> load(std::string_view name);

  // The same from the bytes of a file. Does not trust the bytes. `name` is for errors only.
  static Result<Zone> parse(std::string_view name, std::string_view bytes);

  std::string_view name() const noexcept;

  // Returns the span that contains that instant.
  ZoneSpan span_at(Wall wall) const noexcept;

  // Returns the offset at that instant.
  std::chrono::seconds offset_at(Wall wall) const noexcept;

  // Returns the local time, in whole seconds.
  Local to_local(Wall wall) const noexcept;

  // Returns the first instant at which local clocks show `local` or later. So a time that occurs twice gives its first
  // occurrence, one that is skipped gives the instant after the gap, and a later local time never gives an earlier
  // instant. Clamped to the range of Wall (years 1677 to 2262).
  Wall to_wall(Local local) const noexcept;

 private:
  struct Rules;
  explicit Zone(std::shared_ptr<const Rules> rules) noexcept : rules_(std::move(rules)) {}

  std::shared_ptr<const Rules> rules_;  // null: UTC
};

}  // namespace weir
