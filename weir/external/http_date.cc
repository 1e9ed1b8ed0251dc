#include "weir/external/http_date.h"

#include <array>
#include <chrono>
#include <cstddef>

#include "weir/base/ascii.h"

namespace weir::external {
namespace {

constexpr int kYearMin = 1970;
constexpr int kYearMax = 2200;  // Wall ends in 2262

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Matches `text` with a pattern of the same length: 'D' a day, 'M' a month's name, 'Y' a year, 'h', 'm' and 's' the
// time, '*' anything, and every other character itself. Numbers have as many digits as the pattern has letters; the
// first digit of a day may be a space.
struct DateParts {
  int day = 0;
  int month = 0;
  int year = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

int* part_of(char letter, DateParts& parts) noexcept {
  switch (letter) {
    case 'D':
      return &parts.day;
    case 'Y':
      return &parts.year;
    case 'h':
      return &parts.hour;
    case 'm':
      return &parts.minute;
    case 's':
      return &parts.second;
    default:
      return nullptr;
  }
}

bool match(std::string_view pattern, std::string_view text, DateParts& parts) noexcept {
  if (text.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (pattern[i] == '*') continue;
    if (pattern[i] == 'M') {
      for (std::size_t month = 0; month < kMonths.size(); ++month) {
        if (text.substr(i, 3) == kMonths[month]) parts.month = static_cast<int>(month) + 1;
      }
      i += 2;  // the pattern has MMM
      continue;
    }
    if (int* const part = part_of(pattern[i], parts)) {
      const bool padded = pattern[i] == 'D' && *part == 0 && text[i] == ' ';
      if (!padded && !is_digit(text[i])) return false;
      *part = *part * 10 + (padded ? 0 : text[i] - '0');
      continue;
    }
    if (pattern[i] != text[i]) return false;
  }
  return true;
}

std::optional<Wall> to_wall(const DateParts& parts) noexcept {
  using namespace std::chrono;
  if (parts.year < kYearMin || parts.year > kYearMax) return std::nullopt;
  const year_month_day date{year{parts.year}, month{static_cast<unsigned>(parts.month)},
                            day{static_cast<unsigned>(parts.day)}};
  // 60 is a leap second.
  if (!date.ok() || parts.hour > 23 || parts.minute > 59 || parts.second > 60) return std::nullopt;
  return Wall{sys_days{date}} + hours{parts.hour} + minutes{parts.minute} + seconds{parts.second};
}

}  // namespace

std::optional<Wall> parse_http_date(std::string_view text) {
  if (DateParts parts; match("***, DD MMM YYYY hh:mm:ss GMT", text, parts)) return to_wall(parts);
  if (DateParts parts; match("*** MMM DD hh:mm:ss YYYY", text, parts)) return to_wall(parts);
  const std::size_t comma = text.find(',');
  if (comma == text.npos) return std::nullopt;
  DateParts parts;
  if (!match(", DD-MMM-YY hh:mm:ss GMT", text.substr(comma), parts)) return std::nullopt;
  parts.year += parts.year < 70 ? 2000 : 1900;
  return to_wall(parts);
}

}  // namespace weir::external
