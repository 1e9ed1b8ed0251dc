#include "weir/base/text.h"

#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "weir/base/ascii.h"
#include "weir/base/printable.h"

namespace weir {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// A unit's name and its size in the smallest unit.
struct Unit {
  std::string_view name;
  std::int64_t scale;
};

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kWeek = 7 * kDay;

// µ is U+00B5 (micro sign) or U+03BC (Greek mu): keyboards disagree.
constexpr std::array kDurationUnits{
    Unit{"ns", 1},
    Unit{"us", kMicrosecond},
    Unit{"\u00b5s", kMicrosecond},
    Unit{"\u03bcs", kMicrosecond},
    Unit{"ms", kMillisecond},
    Unit{"s", kSecond},
    Unit{"m", kMinute},
    Unit{"h", kHour},
    Unit{"d", kDay},
    Unit{"w", kWeek},
};

constexpr std::array kRateUnits{
    Unit{"s", kSecond},       Unit{"sec", kSecond},     Unit{"secs", kSecond}, Unit{"second", kSecond},
    Unit{"seconds", kSecond}, Unit{"m", kMinute},       Unit{"min", kMinute},  Unit{"mins", kMinute},
    Unit{"minute", kMinute},  Unit{"minutes", kMinute}, Unit{"h", kHour},      Unit{"hour", kHour},
    Unit{"hours", kHour},     Unit{"d", kDay},          Unit{"day", kDay},     Unit{"days", kDay},
};

constexpr std::array kSizeUnits{
    Unit{"", 1},          Unit{"K", 1'000},     Unit{"M", 1'000'000}, Unit{"G", 1'000'000'000},
    Unit{"KiB", 1 << 10}, Unit{"MiB", 1 << 20}, Unit{"GiB", 1 << 30},
};

std::optional<std::int64_t> find(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.scale;
  }
  return std::nullopt;
}

// Makes every error of this file: `what "value" rule`.
Error refuse(std::string_view what, std::string_view value, std::string_view rule) {
  return Error{Fault::invalid, std::string(what) + " " + quote(value) + " " + std::string(rule)};
}

// whole + fraction / 10^digits, exactly as written; trailing zeros of the fraction are dropped.
struct Decimal {
  std::int64_t whole = 0;
  std::int64_t fraction = 0;
  int digits = 0;
};

// A decimal with more fraction digits than this divides no unit into whole nanoseconds: the week has 16 factors of two
// and 11 of five.
constexpr int kFractionDigitsMax = 18;

constexpr std::int64_t power_of_ten(int exponent) noexcept {
  std::int64_t power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

enum class Flaw { none, no_number, too_large, too_fine };

// Consumes leading digits. Returns false if they do not fit.
bool take_digits(std::string_view& text, std::int64_t& value) {
  while (!text.empty() && is_digit(text.front())) {
    const std::int64_t digit = text.front() - '0';
    if (value > (kMax - digit) / 10) return false;
    value = value * 10 + digit;
    text.remove_prefix(1);
  }
  return true;
}

// Consumes a leading "12" or "12.5".
Flaw take_decimal(std::string_view& text, Decimal& decimal) {
  if (text.empty() || !is_digit(text.front())) return Flaw::no_number;
  if (!take_digits(text, decimal.whole)) return Flaw::too_large;
  if (text.empty() || text.front() != '.') return Flaw::none;
  text.remove_prefix(1);
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  if (length == 0) return Flaw::no_number;
  std::string_view fraction = text.substr(0, length);
  text.remove_prefix(length);
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (fraction.size() > kFractionDigitsMax) return Flaw::too_fine;
  decimal.digits = static_cast<int>(fraction.size());
  take_digits(fraction, decimal.fraction);
  return Flaw::none;
}

// Returns the decimal times a unit, if that is an integer in range.
Flaw scale(const Decimal& decimal, std::int64_t unit, std::int64_t& product) {
  const Wide fraction = Wide{decimal.fraction} * unit;
  const std::int64_t parts = power_of_ten(decimal.digits);
  if (fraction % parts != 0) return Flaw::too_fine;
  const Wide sum = Wide{decimal.whole} * unit + fraction / parts;
  if (sum > kMax) return Flaw::too_large;
  product = static_cast<std::int64_t>(sum);
  return Flaw::none;
}

// The error for a duration's number, or for its product with its unit.
Error refuse_duration(std::string_view what, std::string_view value, Flaw flaw) {
  switch (flaw) {
    case Flaw::none:
      break;
    case Flaw::no_number:
      if (!value.empty() && value.front() == '-') return refuse(what, value, "must not be negative");
      return refuse(what, value, "must be digits, with digits on both sides of a decimal point");
    case Flaw::too_large:
      return Error{Fault::too_large, std::string(what) + " " + quote(value) + " is longer than 292 years"};
    case Flaw::too_fine:
      return refuse(what, value, "is finer than a nanosecond");
  }
  WEIR_ASSERT(false);
}

}  // namespace

std::optional<Ratio> split_ratio(std::string_view text) {
  for (const std::string_view word : {" per ", "/"}) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos) continue;
    Ratio ratio{text.substr(0, at), text.substr(at + word.size())};
    while (ratio.amount.ends_with(' ')) ratio.amount.remove_suffix(1);
    while (ratio.unit.starts_with(' ')) ratio.unit.remove_prefix(1);
    return ratio;
  }
  return std::nullopt;
}

Result<std::int64_t> parse_integer(std::string_view text) {
  constexpr std::string_view what = "integer";
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest.front() == '-';
  if (negative) rest.remove_prefix(1);
  if (rest.empty()) return refuse(what, text, "has no digits");
  Wide value = 0;
  for (const char c : rest) {
    if (!is_digit(c)) return refuse(what, text, "must be digits only, with an optional minus");
    value = value * 10 + (c - '0');
    if (value > Wide{kMax} + (negative ? 1 : 0)) {
      return Error{Fault::too_large, std::string(what) + " " + quote(text) + " does not fit 64 bits"};
    }
  }
  return static_cast<std::int64_t>(negative ? -value : value);
}

Result<Duration> parse_duration(std::string_view text) {
  constexpr std::string_view what = "duration";
  constexpr std::string_view units = "(ns, us, ms, s, m, h, d or w)";
  if (text.empty()) return refuse(what, text, "is empty");
  std::int64_t sum = 0;
  std::int64_t last_unit = kMax;
  for (std::string_view rest = text; !rest.empty();) {
    Decimal number;
    if (const Flaw flaw = take_decimal(rest, number); flaw != Flaw::none) return refuse_duration(what, text, flaw);
    std::size_t length = 0;
    while (length < rest.size() && !is_digit(rest[length]) && rest[length] != '.') ++length;
    if (length == 0) return refuse(what, text, "lacks a unit " + std::string(units));
    const std::optional<std::int64_t> unit = find(kDurationUnits, rest.substr(0, length));
    if (!unit) return refuse(what, text, "has no known unit " + std::string(units));
    if (*unit >= last_unit)
      return refuse(what, text, "must name its units from the largest to the smallest, each once");
    last_unit = *unit;
    rest.remove_prefix(length);
    std::int64_t part = 0;
    if (const Flaw flaw = scale(number, *unit, part); flaw != Flaw::none) return refuse_duration(what, text, flaw);
    if (__builtin_add_overflow(sum, part, &sum)) return refuse_duration(what, text, Flaw::too_large);
  }
  return Duration{sum};
}

Result<Rate> parse_rate(std::string_view text) {
  constexpr std::string_view what = "rate";
  const std::optional<Ratio> ratio = split_ratio(text);
  if (!ratio) return refuse(what, text, "must read like 100/s, 0.5/s or 20 per minute");
  const std::optional<std::int64_t> unit = find(kRateUnits, ratio->unit);
  if (!unit) return refuse(what, text, "has no known unit (s, m, h, d, second, minute, hour or day)");
  std::string_view rest = ratio->amount;
  Decimal amount;
  const Flaw flaw = take_decimal(rest, amount);
  if (flaw == Flaw::too_large) return Error{Fault::too_large, "rate " + quote(text) + " does not fit 64 bits"};
  if (flaw == Flaw::too_fine) return refuse(what, text, "has more than 18 digits after the decimal point");
  if (flaw == Flaw::no_number && !rest.empty() && rest.front() == '-')
    return refuse(what, text, "must not be negative");
  if (flaw == Flaw::no_number || !rest.empty()) return refuse(what, text, "must begin with a decimal number");

  // whole + fraction/parts per unit is whole*parts + fraction per unit*parts, in lowest terms.
  const std::int64_t common = std::gcd(amount.fraction, power_of_ten(amount.digits));
  const std::int64_t parts = power_of_ten(amount.digits) / common;
  const Wide count = Wide{amount.whole} * parts + amount.fraction / common;
  const Wide period = Wide{*unit} * parts;
  if (count == 0) return refuse(what, text, "must be more than zero");
  if (count > kMax || period > kMax) {
    return Error{Fault::too_large, "rate " + quote(text) + " does not fit 64 bits as a count per whole period"};
  }
  return Rate{static_cast<std::int64_t>(count), Duration{static_cast<std::int64_t>(period)}};
}

Result<std::int64_t> parse_size(std::string_view text) {
  constexpr std::string_view what = "size";
  if (text.empty()) return refuse(what, text, "is empty");
  if (text.front() == '-') return refuse(what, text, "must not be negative");
  if (!is_digit(text.front())) return refuse(what, text, "must begin with digits");
  const Error too_large{Fault::too_large, "size " + quote(text) + " does not fit 64 bits"};
  std::string_view rest = text;
  std::int64_t number = 0;
  if (!take_digits(rest, number)) return too_large;
  const std::optional<std::int64_t> unit = find(kSizeUnits, rest);
  if (!unit) return refuse(what, text, "has no known unit (K, M, G, KiB, MiB, GiB or none)");
  if (__builtin_mul_overflow(number, *unit, &number)) return too_large;
  return number;
}

Result<Duration> parse_seconds(std::string_view text) {
  constexpr std::string_view what = "seconds";
  if (text.empty()) return refuse(what, text, "is empty");
  std::string_view rest = text;
  Decimal number;
  if (const Flaw flaw = take_decimal(rest, number); flaw != Flaw::none) return refuse_duration(what, text, flaw);
  if (!rest.empty()) return refuse_duration(what, text, Flaw::no_number);
  std::int64_t product = 0;
  if (const Flaw flaw = scale(number, kSecond, product); flaw != Flaw::none) return refuse_duration(what, text, flaw);
  return Duration{product};
}

namespace {

// Unsigned, because the magnitude of the smallest number does not fit its own type.
std::uint64_t magnitude(Duration d) noexcept {
  const auto ticks = static_cast<std::uint64_t>(d.count());
  return d < Duration::zero() ? 0 - ticks : ticks;
}

// Returns the length of the character at the start of the text, or 0 for a control character, one that changes the
// direction or the line of what follows, or invalid UTF-8.
std::size_t printable_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  if (first < 0xc2 || !continues(1)) return 0;
  if (first < 0xe0) return first == 0xc2 && byte(1) < 0xa0 ? 0 : 2;  // U+0080..9F are controls
  if (!continues(2)) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;                                         // overlong
  if (first == 0xed && byte(1) >= 0xa0) return 0;                                        // surrogates
  if (first == 0xe2 && byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) return 0;  // U+2028..202E
  if (first == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9) return 0;  // U+2066..2069
  if (first < 0xf0) return 3;
  if (!continues(3) || first > 0xf4) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;   // overlong
  if (first == 0xf4 && byte(1) >= 0x90) return 0;  // beyond U+10FFFF
  return 4;
}

}  // namespace

void append_seconds(Duration d, std::string& out) {
  const std::uint64_t ticks = magnitude(d);
  if (d < Duration::zero()) out += '-';
  append_integer(static_cast<std::int64_t>(ticks / kSecond), out);
  const std::uint64_t fraction = ticks % kSecond;
  if (fraction == 0) return;
  // The leading 1 keeps the zeros of the fraction; the decimal point then replaces it.
  const std::size_t point = out.size();
  append_integer(static_cast<std::int64_t>(kSecond + fraction), out);
  out[point] = '.';
  out.erase(out.find_last_not_of('0') + 1);
}

std::string print_seconds(Duration d) {
  std::string out;
  append_seconds(d, out);
  return out;
}

void append_integer(std::int64_t number, std::string& out) {
  char digits[24];
  const auto [end, fault] = std::to_chars(digits, digits + sizeof digits, number);
  static_cast<void>(fault);  // 24 characters are enough for every int64
  out.append(digits, end);
}

std::string print_instant(Wall wall) {
  const auto day = std::chrono::floor<std::chrono::days>(wall);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::milliseconds>(wall - day));
  const auto digits = [](std::int64_t number, std::size_t width) {
    const std::string text = std::to_string(number);
    return std::string(width - std::min(width, text.size()), '0') + text;
  };
  std::string out = digits(int{date.year()}, 4) + '-' + digits(unsigned{date.month()}, 2) + '-' +
                    digits(unsigned{date.day()}, 2) + 'T' + digits(time.hours().count(), 2) + ':' +
                    digits(time.minutes().count(), 2) + ':' + digits(time.seconds().count(), 2);
  if (time.subseconds().count() != 0) out += '.' + digits(time.subseconds().count(), 3);
  return out + 'Z';
}

std::string print_duration(Duration d) {
  if (d == Duration::zero()) return "0s";
  std::string out = d < Duration::zero() ? "-" : "";
  std::uint64_t rest = magnitude(d);
  for (const Unit& unit : {Unit{"d", kDay}, Unit{"h", kHour}, Unit{"m", kMinute}, Unit{"s", kSecond}}) {
    const auto unit_ticks = static_cast<std::uint64_t>(unit.scale);
    if (rest >= unit_ticks) out += std::to_string(rest / unit_ticks) + std::string(unit.name);
    rest %= unit_ticks;
  }
  if (rest == 0) return out;
  if (rest % kMillisecond == 0) return out + std::to_string(rest / kMillisecond) + "ms";
  if (rest % kMicrosecond == 0) return out + std::to_string(rest / kMicrosecond) + "us";
  return out + std::to_string(rest) + "ns";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      out += "\\x";
      append_hex(static_cast<unsigned char>(text.front()), out);
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

std::string quote(std::string_view value) {
  constexpr std::size_t shown_bytes_max = 80;
  std::string out = "\"";
  std::size_t at = 0;
  while (at < value.size() && at < shown_bytes_max) {
    const std::size_t length = printable_length(value.substr(at));
    if (value[at] == '"' || value[at] == '\\') out.push_back('\\');
    if (length > 0) {
      out += value.substr(at, length);
    } else {
      out += "\\x";
      append_hex(static_cast<unsigned char>(value[at]), out);
    }
    at += length > 0 ? length : 1;
  }
  return out + (at < value.size() ? "\"..." : "\"");
}

}  // namespace weir
