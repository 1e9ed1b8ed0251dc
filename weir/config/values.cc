#include "weir/config/values.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/identify/quote.h"

namespace weir::config {
namespace {

constexpr std::array<std::string_view, 7> kDays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

// In the order of Calendar.
constexpr std::array<std::string_view, 4> kCalendars{"hour", "day", "week", "month"};

Error refuse(std::string_view what, std::string_view value, std::string_view rule) {
  return Error{Fault::invalid, std::string(what) + " " + quote(value) + " " + std::string(rule)};
}

std::optional<std::size_t> find_day(std::string_view name) {
  const auto found = std::find(kDays.begin(), kDays.end(), name);
  if (found == kDays.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kDays.begin());
}

// Exactly `size` digits as a number.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t size) {
  if (at + size > text.size()) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(at, size)) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// "HH:MM" as minutes; 24:00 only where it may end something.
std::optional<int> minutes_of_day(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const std::optional<int> hour = digits(text, 0, 2);
  const std::optional<int> minute = digits(text, 3, 2);
  if (!hour || !minute || *minute > 59 || *hour * 60 + *minute > 24 * 60) return std::nullopt;
  return *hour * 60 + *minute;
}

std::string two_digits(int value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

// What RFC 9110 calls a token: names of headers and cookies.
bool is_token(std::string_view text) {
  constexpr std::string_view punctuation = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || punctuation.find(c) != std::string::npos;
  });
}

bool is_printable(std::string_view text) {
  return !text.empty() && text.find(' ') == std::string_view::npos && !has_control(text);
}

}  // namespace

Result<std::uint8_t> parse_days(std::string_view text) {
  constexpr std::string_view rule = "must read like mon-fri or sat,sun (sun, mon, tue, wed, thu, fri, sat)";
  unsigned days = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::string_view part = text.substr(at, comma - at);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    const std::size_t dash = part.find('-');
    const std::optional<std::size_t> first = find_day(part.substr(0, std::min(dash, part.size())));
    const std::optional<std::size_t> last = dash == std::string_view::npos ? first : find_day(part.substr(dash + 1));
    if (!first || !last) return refuse("days", text, rule);
    for (std::size_t day = *first;; day = (day + 1) % kDays.size()) {
      days |= 1u << day;
      if (day == *last) break;
    }
    at = comma + 1;
  }
  return static_cast<std::uint8_t>(days);
}

std::string print_days(std::uint8_t days) {
  if (days == 0x7f) return "mon-sun";
  if (days == 0x3e) return "mon-fri";
  std::string out;
  for (std::size_t i = 1; i <= kDays.size(); ++i) {
    const std::size_t day = i % kDays.size();  // weeks begin on Monday
    if ((days >> day & 1) != 0) out += (out.empty() ? "" : ",") + std::string(kDays[day]);
  }
  return out;
}

Result<Hours> parse_hours(std::string_view text) {
  const std::optional<int> from = text.size() == 11 ? minutes_of_day(text.substr(0, 5)) : std::nullopt;
  const std::optional<int> to = text.size() == 11 && text[5] == '-' ? minutes_of_day(text.substr(6)) : std::nullopt;
  if (!from || !to || *from == 24 * 60) return refuse("hours", text, "must read like 09:00-18:00 or 22:00-06:00");
  if (*from == *to) return refuse("hours", text, "are empty; a whole day is 00:00-24:00");
  return Hours{*from, *to};
}

std::string print_hours(Hours hours) {
  return two_digits(hours.from / 60) + ":" + two_digits(hours.from % 60) + "-" + two_digits(hours.to / 60) + ":" +
         two_digits(hours.to % 60);
}

Result<QuotaText> parse_quota(std::string_view text) {
  constexpr std::string_view rule = "must read like 100000/month or 5 per day (hour, day, week or month)";
  const std::optional<Ratio> ratio = split_ratio(text);
  if (!ratio) return refuse("quota", text, rule);
  const auto found = std::find(kCalendars.begin(), kCalendars.end(), ratio->unit);
  if (found == kCalendars.end()) return refuse("quota", text, rule);
  const Result<std::int64_t> size = parse_integer(ratio->amount);
  if (!size && size.error().fault != Fault::too_large) return refuse("quota", text, rule);
  if (!size || *size < 1 || *size > bounds::quota_max) {
    return refuse("quota", text, "must be 1 to " + std::to_string(bounds::quota_max));
  }
  return QuotaText{*size, static_cast<Calendar>(found - kCalendars.begin())};
}

std::string print_quota(const QuotaText& quota) {
  if (quota.every != Duration::zero()) return std::to_string(quota.size) + " per " + print_duration(quota.every);
  return std::to_string(quota.size) + " per " + std::string(kCalendars[static_cast<std::size_t>(quota.calendar)]);
}

Result<Count> parse_share(std::string_view text) {
  const Result<std::int64_t> servers = text.starts_with("1/") ? parse_integer(text.substr(2)) : 0;
  if (servers && *servers >= 1 && *servers <= bounds::share_max) return *servers;
  return refuse("share", text, "must read like 1/4, for one of 1 to " + std::to_string(bounds::share_max) + " servers");
}

Result<void> check_key_source(std::string_view text) {
  constexpr std::array<std::string_view, 6> alone{"ip", "apikey", "path", "method", "host", "global"};
  if (std::find(alone.begin(), alone.end(), text) != alone.end()) return {};
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, std::min(colon, text.size()));
  const std::string_view name = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (kind == "header" || kind == "cookie") {
    if (is_token(name)) return {};
    return refuse("key", text,
                  name.empty() ? "must name its " + std::string(kind) + " after the colon"
                               : "names a " + std::string(kind) + " with a character that no such name has");
  }
  if (kind == "query" || kind == "form" || kind == "descriptor") {
    if (is_printable(name)) return {};
    return refuse("key", text, "must name its " + std::string(kind) + " field after the colon, without spaces");
  }
  if (kind == "jwt") {
    if (is_printable(name)) return {};
    return refuse("key", text, "must name a claim after the colon, without spaces");
  }
  if (kind == "path") {
    const Result<std::int64_t> segment = parse_integer(name);
    if (segment && *segment >= 1 && *segment <= 64) return {};
    return refuse("key", text, "must name a path segment from 1 to 64");
  }
  return refuse("key", text,
                "must be ip, apikey, header:NAME, cookie:NAME, query:NAME, form:FIELD, path, path:N, method, host, "
                "descriptor:KEY, jwt:CLAIM or global");
}

Result<Wall> parse_instant(std::string_view text) {
  const Error bad = refuse("time", text, "must read like 2027-01-01T00:00:00Z");
  const bool fraction = text.size() == 24 && text[19] == '.';
  const bool shaped = (text.size() == 20 || fraction) && text[4] == '-' && text[7] == '-' && text[10] == 'T' &&
                      text[13] == ':' && text[16] == ':' && text.back() == 'Z';
  if (!shaped) return bad;
  const std::optional<int> year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const std::optional<int> hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  const std::optional<int> thousandths = fraction ? digits(text, 20, 3) : 0;
  if (!year || !month || !day || !hour || !minute || !second || !thousandths) return bad;
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  // Wall holds the years 1677 to 2262.
  if (*year < 1970 || *year > 2261) return refuse("time", text, "must be in a year from 1970 to 2261");
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) {
    return refuse("time", text, "must be a valid date and time of day");
  }
  return Wall{std::chrono::sys_days{date} + std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
              std::chrono::seconds{*second} + std::chrono::milliseconds{*thousandths}};
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= bounds::name_bytes_max && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace weir::config
