// Parses the rule at the end of a TZif file, which applies after the last entry of its table:
// "GMT0BST,M3.5.0/1,M10.5.0" (POSIX TZ, with hours from -167 to 167 as in RFC 8536 §3.3.1). Private to zone.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir {

// A span of time with one offset: [since, until). All in seconds.
struct OffsetSpan {
  std::int64_t since = 0;
  std::int64_t until = 0;
  std::int64_t offset = 0;
};

class PosixTz {
 public:
  // Returns nullopt if the text is not a valid rule.
  static std::optional<PosixTz> parse(std::string_view text) noexcept;

  // Returns the span that contains an instant, for years within the range of std::chrono.
  OffsetSpan span_at(std::int64_t utc) const noexcept;

 private:
  struct Date {
    enum class Form : unsigned char { julian, zero_based, weekday } form = Form::julian;
    int day = 0;    // julian: 1..365, never February 29; zero_based: 0..365; weekday: 0..6, Sunday is 0
    int week = 0;   // weekday: 1..5, 5 is the last
    int month = 0;  // weekday: 1..12
    int time = 0;   // seconds after local midnight, -167 to 167 hours

    std::int64_t in_year(int year) const noexcept;  // local seconds since 1970
  };
  class Reader;

  int standard_ = 0;  // offsets, east positive
  int summer_ = 0;
  bool has_summer_ = false;
  Date start_;  // of summer time
  Date end_;
};

}  // namespace weir
