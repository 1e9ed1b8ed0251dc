#include "weir/base/posix_tz.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "weir/base/ascii.h"

namespace weir {
namespace {

constexpr int kHourSeconds = 3'600;
constexpr int kDaySeconds = 86'400;

}  // namespace

// Each function consumes one element, or returns false.
class PosixTz::Reader {
 public:
  explicit Reader(std::string_view text) noexcept : rest_(text) {}

  bool done() const noexcept { return rest_.empty(); }
  char next() const noexcept { return rest_.empty() ? '\0' : rest_.front(); }

  bool skip(char c) noexcept {
    if (next() != c || done()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // "GMT" or "<+0330>": three characters or more.
  bool abbreviation() noexcept {
    const bool bracketed = skip('<');
    std::size_t length = 0;
    while (length < rest_.size() &&
           (is_letter(rest_[length]) ||
            (bracketed && (is_digit(rest_[length]) || rest_[length] == '+' || rest_[length] == '-')))) {
      ++length;
    }
    rest_.remove_prefix(length);
    return length >= 3 && (!bracketed || skip('>'));
  }

  bool number(int low, int high, int& value) noexcept {
    if (!is_digit(next())) return false;
    value = 0;
    while (is_digit(next())) {
      value = value * 10 + (next() - '0');
      if (value > high) return false;
      rest_.remove_prefix(1);
    }
    return value >= low;
  }

  // "[+-]hh[:mm[:ss]]" in seconds.
  bool time(int hours_max, int& seconds) noexcept {
    const bool negative = skip('-');
    if (!negative) skip('+');
    int hours = 0, minutes = 0, rest = 0;
    if (!number(0, hours_max, hours)) return false;
    if (skip(':')) {
      if (!number(0, 59, minutes)) return false;
      if (skip(':') && !number(0, 59, rest)) return false;
    }
    seconds = (hours * kHourSeconds + minutes * 60 + rest) * (negative ? -1 : 1);
    return true;
  }

  // ",M3.5.0/1", ",J60" or ",59/2".
  bool date(Date& date) noexcept {
    if (!skip(',')) return false;
    if (skip('M')) {
      date.form = Date::Form::weekday;
      if (!number(1, 12, date.month) || !skip('.') || !number(1, 5, date.week) || !skip('.') ||
          !number(0, 6, date.day)) {
        return false;
      }
    } else if (skip('J')) {
      date.form = Date::Form::julian;
      if (!number(1, 365, date.day)) return false;
    } else {
      date.form = Date::Form::zero_based;
      if (!number(0, 365, date.day)) return false;
    }
    date.time = 2 * kHourSeconds;
    return !skip('/') || time(167, date.time);
  }

 private:
  std::string_view rest_;
};

std::optional<PosixTz> PosixTz::parse(std::string_view text) noexcept {
  PosixTz tz;
  Reader reader(text);
  // POSIX counts west of Greenwich as positive.
  int west = 0;
  if (!reader.abbreviation() || !reader.time(24, west)) return std::nullopt;
  tz.standard_ = -west;
  if (reader.done()) return tz;
  tz.has_summer_ = true;
  if (!reader.abbreviation()) return std::nullopt;
  tz.summer_ = tz.standard_ + kHourSeconds;
  if (reader.next() != ',') {
    if (!reader.time(24, west)) return std::nullopt;
    tz.summer_ = -west;
  }
  if (!reader.date(tz.start_) || !reader.date(tz.end_) || !reader.done()) return std::nullopt;
  return tz;
}

std::int64_t PosixTz::Date::in_year(int number) const noexcept {
  using namespace std::chrono;
  const year y{number};
  const auto first_day = local_days{y / January / 1}.time_since_epoch().count();
  switch (form) {
    case Form::julian:
      return (first_day + day - 1 + (y.is_leap() && day >= 60 ? 1 : 0)) * std::int64_t{kDaySeconds} + time;
    case Form::zero_based:
      return (first_day + day) * std::int64_t{kDaySeconds} + time;
    case Form::weekday:
      break;
  }
  const weekday wanted{static_cast<unsigned>(day)};
  const auto m = y / std::chrono::month{static_cast<unsigned>(month)};
  const local_days found =
      week == 5 ? local_days{m / wanted[last]} : local_days{m / wanted[static_cast<unsigned>(week)]};
  return found.time_since_epoch().count() * std::int64_t{kDaySeconds} + time;
}

OffsetSpan PosixTz::span_at(std::int64_t utc) const noexcept {
  using namespace std::chrono;
  OffsetSpan span{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), standard_};
  if (!has_summer_) return span;
  const int year = int{year_month_day{floor<days>(sys_seconds{seconds{utc + standard_}})}.year()};
  const auto consider = [&](std::int64_t change, int offset) {
    if (change > utc) {
      span.until = std::min(span.until, change);
    } else if (change >= span.since) {
      span.since = change;
      span.offset = offset;
    }
  };
  // A rule's hours may move its changes up to a week across the end of the year, so neighboring years are checked too.
  for (int y = year - 2; y <= year + 2; ++y) {
    // The start comes second: if summer time ends and starts at the same instant, as in a zone that always has it, it
    // continues.
    consider(end_.in_year(y) - summer_, standard_);
    consider(start_.in_year(y) - standard_, summer_);
  }
  return span;
}

}  // namespace weir
