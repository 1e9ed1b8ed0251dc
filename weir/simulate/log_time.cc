#include "weir/simulate/log_time.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include "weir/base/text.h"

namespace weir::simulate {
namespace {

using std::chrono::seconds;

Error not_a_time(std::string_view text, std::string_view rule) {
  return Error{Fault::invalid, "time " + quote(text) + " " + std::string(rule)};
}

// Parses that many digits at the start of `text`; -1 if there are fewer.
int digits(std::string_view text, std::size_t n) noexcept {
  if (text.size() < n) return -1;
  int value = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// 1..12, or 0.
unsigned month_of(std::string_view name) noexcept {
  constexpr std::string_view names = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::size_t at = name.size() == 3 ? names.find(name) : std::string_view::npos;
  return at == std::string_view::npos || at % 3 != 0 ? 0 : static_cast<unsigned>(at / 3 + 1);
}

// Returns midnight of a date from 1970 to 2099, as if it were UTC.
std::optional<Wall> day(int year, unsigned month, int day_of_month) noexcept {
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{static_cast<unsigned>(std::max(day_of_month, 0))}};
  if (year < 1970 || year > 2099 || !date.ok()) return std::nullopt;
  return Wall{std::chrono::sys_days{date}};
}

// Takes ".123" off the front; without a fraction, the resolution is one second. Drops digits after the ninth.
Stamp take_fraction(std::string_view& text, Wall base) noexcept {
  Stamp stamp{base, seconds{1}};
  if (text.empty() || (text.front() != '.' && text.front() != ',')) return stamp;
  text.remove_prefix(1);
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (stamp.resolution > Duration{1}) {
      stamp.resolution /= 10;
      stamp.time += stamp.resolution * (text.front() - '0');
    }
    text.remove_prefix(1);
  }
  return stamp;
}

// Parses "+0200", "-07:00" or "Z"; nullopt for anything else.
std::optional<seconds> offset_of(std::string_view text) noexcept {
  if (text == "Z" || text == "z") return seconds{0};
  if (text.size() < 5 || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const std::string_view rest = text.substr(text[3] == ':' ? 4 : 3);
  const int hours = digits(text.substr(1), 2);
  const int minutes = digits(rest, 2);
  if (hours < 0 || minutes < 0 || hours > 23 || minutes > 59 || rest.size() != 2) return std::nullopt;
  const seconds offset{hours * 3600 + minutes * 60};
  return text.front() == '-' ? -offset : offset;
}

// Converts a local time to UTC with `offset`, the text that follows it, or with the zone if that is empty.
bool to_utc(Stamp& stamp, std::string_view offset, const Zone& zone) {
  if (offset.empty()) {
    const Duration since = stamp.time.time_since_epoch();
    const Local local{std::chrono::floor<seconds>(since)};
    stamp.time = zone.to_wall(local) + since % seconds{1};
  } else if (const std::optional<seconds> east = offset_of(offset)) {
    stamp.time -= *east;
  } else {
    return false;
  }
  return stamp.time.time_since_epoch() >= Duration::zero();
}

constexpr std::string_view kClfRule = "is not like 18/Nov/2026:05:26:32 +0000";
constexpr std::string_view kRfcRule = "is not like 2026-11-18T05:26:32.123Z";

}  // namespace

Result<Stamp> ClfTime::read(std::string_view text) {
  if (text.size() < 20 || text[17] != ':') return not_a_time(text, kClfRule);
  if (std::memcmp(minute_, text.data(), sizeof minute_) != 0) {
    const int hour = digits(text.substr(12), 2);
    const int minute = digits(text.substr(15), 2);
    const std::optional<Wall> date = day(digits(text.substr(7), 4), month_of(text.substr(3, 3)), digits(text, 2));
    const bool shaped = text[2] == '/' && text[6] == '/' && text[11] == ':' && text[14] == ':';
    if (!date || !shaped || hour < 0 || hour > 23 || minute < 0 || minute > 59) return not_a_time(text, kClfRule);
    local_ = *date + std::chrono::hours{hour} + std::chrono::minutes{minute};
    std::memcpy(minute_, text.data(), sizeof minute_);
  }
  const int second = digits(text.substr(18), 2);
  if (second < 0 || second > 60) return not_a_time(text, kClfRule);
  std::string_view rest = text.substr(20);
  Stamp stamp = take_fraction(rest, local_ + seconds{second});
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (!to_utc(stamp, rest, zone_)) return not_a_time(text, kClfRule);
  return stamp;
}

Result<Stamp> read_rfc3339(std::string_view text, const Zone& zone) {
  const auto separated = [&](std::size_t at, std::string_view any) { return any.find(text[at]) != any.npos; };
  if (text.size() < 19 || !separated(4, "-") || !separated(7, "-") || !separated(10, "Tt ") || !separated(13, ":") ||
      !separated(16, ":")) {
    return not_a_time(text, kRfcRule);
  }
  const int month = digits(text.substr(5), 2);
  const std::optional<Wall> date =
      day(digits(text, 4), static_cast<unsigned>(std::max(month, 0)), digits(text.substr(8), 2));
  const int hour = digits(text.substr(11), 2);
  const int minute = digits(text.substr(14), 2);
  const int second = digits(text.substr(17), 2);
  if (!date || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
    return not_a_time(text, kRfcRule);
  }
  std::string_view rest = text.substr(19);
  const Wall base = *date + std::chrono::hours{hour} + std::chrono::minutes{minute} + seconds{second};
  Stamp stamp = take_fraction(rest, base);
  if (!to_utc(stamp, rest, zone)) return not_a_time(text, kRfcRule);
  return stamp;
}

Result<Stamp> read_epoch(std::string_view number) {
  constexpr std::string_view rule = "is not a number of seconds since 1970";
  std::size_t whole = 0;
  while (whole < number.size() && number[whole] >= '0' && number[whole] <= '9') ++whole;
  if (whole == 0 || whole > 19) return not_a_time(number, rule);
  // How many of the digits are a fraction of a second: three if the time is in milliseconds.
  const std::size_t fraction = whole > 17 ? 9 : whole > 14 ? 6 : whole > 11 ? 3 : 0;
  std::int64_t since = 0;
  for (const char c : number.substr(0, whole - fraction)) since = since * 10 + (c - '0');
  if (since >= 4'000'000'000) return not_a_time(number, "is after the year 2096");
  std::string exact = "." + std::string(number.substr(whole - fraction, fraction));
  std::string_view rest = number.substr(whole);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    const std::size_t more = std::min(rest.find_first_not_of("0123456789"), rest.size());
    exact += rest.substr(0, more);
    rest.remove_prefix(more);
  }
  if (!rest.empty()) return not_a_time(number, rule);
  std::string_view tail = exact;
  return take_fraction(tail, Wall{seconds{since}});
}

}  // namespace weir::simulate
