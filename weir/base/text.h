// Parses and prints numbers: integers, durations, rates, sizes and decimal seconds. Exact: no floating point. A value
// that does not fit is an Error that quotes it and states the rule, never a rounded number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir {

// `count` every `period`, in lowest terms of the written decimal: "0.5/s" is 1 per 2 s, "100/s" is 100 per 1 s.
struct Rate {
  std::int64_t count = 0;
  Duration period = Duration::zero();

  friend constexpr bool operator==(const Rate&, const Rate&) = default;
};

// Splits a rate: "20 per minute" and "20 / minute" become "20" and "minute". Ignores spaces around the separator.
// Returns nullopt if there is none.
struct Ratio {
  std::string_view amount;
  std::string_view unit;
};
std::optional<Ratio> split_ratio(std::string_view text);

// "-12", "0", "300": digits with an optional minus, in the range of 64 bits.
Result<std::int64_t> parse_integer(std::string_view text);

// "10ns 50us 300ms 1s 180m 2h45m 1.5h 7d 2w" (or µs for us). Units must descend; each appears at most once.
Result<Duration> parse_duration(std::string_view text);

// "100/s", "0.5/s", "20 per minute", "5000 / hour". A unit may be written s, sec, second, m, min, minute, h, hour, d,
// day or their plurals. Must be more than zero.
Result<Rate> parse_rate(std::string_view text);

// "65536", "50M", "64KiB": K M G are powers of 1000, KiB MiB GiB of 1024. Must not be negative.
Result<std::int64_t> parse_size(std::string_view text);

// Decimal seconds, "0.05" or "1700000000.123456789": not negative, no finer than a nanosecond.
Result<Duration> parse_seconds(std::string_view text);

// The shortest exact decimal: "0", "0.05", "1", "0.000000001". parse_seconds() reads it back, unless it is negative.
std::string print_seconds(Duration d);

// The same, and an integer, appended to `out` without allocating a string.
void append_seconds(Duration d, std::string& out);
void append_integer(std::int64_t number, std::string& out);

// The canonical form: days, hours, minutes, seconds, then the rest in the largest of ms, us, ns that needs no fraction:
// "3h", "1m30s", "1500us", "0s". parse_duration() reads it back, unless it is negative.
std::string print_duration(Duration d);

// "2027-01-01T00:00:00Z", with milliseconds where there are any: RFC 3339, in UTC.
std::string print_instant(Wall wall);

// Returns the value in double quotes for an error message. Escapes what could garble a terminal or a log line, and
// truncates a long value.
std::string quote(std::string_view value);

}  // namespace weir
