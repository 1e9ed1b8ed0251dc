#include "weir/base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

namespace weir::text_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

template <class T>
std::string refusal(const Result<T>& result) {
  return result ? "" : result.error().detail;
}

TEST(ParseInteger, AcceptsTheWholeRangeAndNothingBeyond) {
  EXPECT_EQ(parse_integer("0").value(), 0);
  EXPECT_EQ(parse_integer("-0").value(), 0);
  EXPECT_EQ(parse_integer("0042").value(), 42);
  EXPECT_EQ(parse_integer("9223372036854775807").value(), kMax);
  EXPECT_EQ(parse_integer("-9223372036854775808").value(), kMin);
  EXPECT_EQ(refusal(parse_integer("9223372036854775808")), R"(integer "9223372036854775808" does not fit 64 bits)");
  EXPECT_EQ(refusal(parse_integer("-9223372036854775809")), R"(integer "-9223372036854775809" does not fit 64 bits)");
  EXPECT_EQ(parse_integer("9223372036854775808").error().fault, Fault::too_large);
}

TEST(ParseInteger, RefusesAnythingButDigits) {
  EXPECT_EQ(refusal(parse_integer("")), R"(integer "" has no digits)");
  EXPECT_EQ(refusal(parse_integer("-")), R"(integer "-" has no digits)");
  for (const std::string_view bad : {"+1", " 1", "1 ", "1.0", "1e3", "0x1", "--1", "1,000"}) {
    EXPECT_EQ(refusal(parse_integer(bad)), "integer " + quote(bad) + " must be digits only, with an optional minus");
  }
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("10ns").value(), 10ns);
  EXPECT_EQ(parse_duration("50us").value(), 50us);
  EXPECT_EQ(parse_duration("50\u00b5s").value(), 50us);
  EXPECT_EQ(parse_duration("50\u03bcs").value(), 50us);
  EXPECT_EQ(parse_duration("300ms").value(), 300ms);
  EXPECT_EQ(parse_duration("1s").value(), 1s);
  EXPECT_EQ(parse_duration("180m").value(), 3h);
  EXPECT_EQ(parse_duration("2h45m").value(), 165min);
  EXPECT_EQ(parse_duration("1.5h").value(), 90min);
  EXPECT_EQ(parse_duration("7d").value(), 168h);
  EXPECT_EQ(parse_duration("2w").value(), 336h);
  EXPECT_EQ(parse_duration("1w1d1h1m1s1ms1us1ns").value(), 193h + 1min + 1s + 1ms + 1us + 1ns);
  EXPECT_EQ(parse_duration("0s").value(), 0ns);
}

TEST(ParseDuration, KeepsFractionsExact) {
  EXPECT_EQ(parse_duration("0.000000001s").value(), 1ns);
  EXPECT_EQ(parse_duration("1.000000001s").value(), 1s + 1ns);
  EXPECT_EQ(parse_duration("0.1s").value(), 100ms);
  EXPECT_EQ(parse_duration("1.50000000000000000000000000000s").value(), 1500ms);
  EXPECT_EQ(parse_duration("1.0ns").value(), 1ns);
  EXPECT_EQ(parse_duration("0.00000000125h").value(), 4500ns);
  EXPECT_EQ(parse_duration("1.5h30m").value(), 2h);
  // The finest exact fraction of a week: 2^-16 of it has sixteen fraction digits.
  EXPECT_EQ(parse_duration("0.0000152587890625w").value(), Duration{604'800'000'000'000 / 65'536});
  EXPECT_EQ(refusal(parse_duration("0.00000762939453125w")),
            R"(duration "0.00000762939453125w" is finer than a nanosecond)");
  EXPECT_EQ(refusal(parse_duration("0.5ns")), R"(duration "0.5ns" is finer than a nanosecond)");
  EXPECT_EQ(refusal(parse_duration("0.0000000001s")), R"(duration "0.0000000001s" is finer than a nanosecond)");
  EXPECT_EQ(refusal(parse_duration("0.0000000000000000001w")),
            R"(duration "0.0000000000000000001w" is finer than a nanosecond)");
}

TEST(ParseDuration, ReachesTheLargestDurationAndNotOneNanosecondMore) {
  EXPECT_EQ(parse_duration("9223372036854775807ns").value(), Duration::max());
  EXPECT_EQ(parse_duration("9223372036s854775807ns").value(), Duration::max());
  const std::string_view rule = " is longer than 292 years";
  for (const std::string_view bad :
       {"9223372036854775808ns", "9223372036s854775808ns", "15251w", "99999999999999999999999999999999w"}) {
    EXPECT_EQ(refusal(parse_duration(bad)), "duration " + quote(bad) + std::string(rule));
    EXPECT_EQ(parse_duration(bad).error().fault, Fault::too_large);
  }
}

TEST(ParseDuration, ExplainsWhyTheInputIsInvalid) {
  EXPECT_EQ(refusal(parse_duration("")), R"(duration "" is empty)");
  EXPECT_EQ(refusal(parse_duration("-1s")), R"(duration "-1s" must not be negative)");
  EXPECT_EQ(refusal(parse_duration("10")), R"(duration "10" lacks a unit (ns, us, ms, s, m, h, d or w))");
  EXPECT_EQ(refusal(parse_duration("1h30")), R"(duration "1h30" lacks a unit (ns, us, ms, s, m, h, d or w))");
  EXPECT_EQ(refusal(parse_duration("1.5.5s")), R"(duration "1.5.5s" lacks a unit (ns, us, ms, s, m, h, d or w))");
  for (const std::string_view bad : {"10y", "10S", "10 s", "1h-5m", "1sec", "1s "}) {
    EXPECT_EQ(refusal(parse_duration(bad)),
              "duration " + quote(bad) + " has no known unit (ns, us, ms, s, m, h, d or w)");
  }
  for (const std::string_view bad : {"s", ".5s", "1.s", "+1s", " 1s", "1h.", "soon"}) {
    EXPECT_EQ(refusal(parse_duration(bad)),
              "duration " + quote(bad) + " must be digits, with digits on both sides of a decimal point");
  }
  for (const std::string_view bad : {"45m2h", "1s1s", "1us1\u00b5s"}) {
    EXPECT_EQ(refusal(parse_duration(bad)),
              "duration " + quote(bad) + " must name its units from the largest to the smallest, each once");
  }
}

TEST(ParseRate, ReadsTheDocumentedForms) {
  EXPECT_EQ(parse_rate("100/s").value(), (Rate{100, 1s}));
  EXPECT_EQ(parse_rate("0.5/s").value(), (Rate{1, 2s}));
  EXPECT_EQ(parse_rate("1.5/s").value(), (Rate{3, 2s}));
  EXPECT_EQ(parse_rate("100.0/s").value(), (Rate{100, 1s}));
  EXPECT_EQ(parse_rate("20 per minute").value(), (Rate{20, 1min}));
  EXPECT_EQ(parse_rate("5000/hour").value(), (Rate{5000, 1h}));
  for (const std::string_view spaced : {"5/day", "5 / day", "5/ day", "5 /day", "5   /  day", "5  per   day"}) {
    EXPECT_EQ(parse_rate(spaced).value(), (Rate{5, 24h})) << spaced;
  }
  EXPECT_EQ(parse_rate("0.001/s").value(), (Rate{1, 1000s}));
  EXPECT_EQ(parse_rate("0.3/d").value(), (Rate{3, 240h}));
  for (const std::string_view unit : {"s", "sec", "secs", "second", "seconds"}) {
    EXPECT_EQ(parse_rate("2/" + std::string(unit)).value(), (Rate{2, 1s})) << unit;
  }
  for (const std::string_view unit : {"m", "min", "mins", "minute", "minutes"}) {
    EXPECT_EQ(parse_rate("2/" + std::string(unit)).value(), (Rate{2, 1min})) << unit;
  }
  for (const std::string_view unit : {"h", "hour", "hours"}) {
    EXPECT_EQ(parse_rate("2 per " + std::string(unit)).value(), (Rate{2, 1h})) << unit;
  }
  for (const std::string_view unit : {"d", "day", "days"}) {
    EXPECT_EQ(parse_rate("2 per " + std::string(unit)).value(), (Rate{2, 24h})) << unit;
  }
}

TEST(ParseRate, ExplainsWhyTheInputIsInvalid) {
  EXPECT_EQ(refusal(parse_rate("0/s")), R"(rate "0/s" must be more than zero)");
  EXPECT_EQ(refusal(parse_rate("0.000/s")), R"(rate "0.000/s" must be more than zero)");
  EXPECT_EQ(refusal(parse_rate("-1/s")), R"(rate "-1/s" must not be negative)");
  for (const std::string_view bad : {"", "100", "100s", "per", "5 perhaps"}) {
    EXPECT_EQ(refusal(parse_rate(bad)), "rate " + quote(bad) + " must read like 100/s, 0.5/s or 20 per minute");
  }
  for (const std::string_view bad : {"1/", "1/S", "1/10s", "1/month", "1/2/s", "1/s ", "1/\ts"}) {
    EXPECT_EQ(refusal(parse_rate(bad)),
              "rate " + quote(bad) + " has no known unit (s, m, h, d, second, minute, hour or day)");
  }
  for (const std::string_view bad : {"/s", "x/s", "1x/s", " 1/s", "1\t/s", ".5/s", "1./s", "+1/s", "1e3/s"}) {
    EXPECT_EQ(refusal(parse_rate(bad)), "rate " + quote(bad) + " must begin with a decimal number");
  }
}

TEST(ParseRate, ReportsARateThatDoesNotFit) {
  EXPECT_EQ(parse_rate("9223372036854775807/s").value(), (Rate{kMax, 1s}));
  EXPECT_EQ(refusal(parse_rate("9223372036854775808/s")), R"(rate "9223372036854775808/s" does not fit 64 bits)");
  EXPECT_EQ(refusal(parse_rate("9223372036854775807.5/s")),
            R"(rate "9223372036854775807.5/s" does not fit 64 bits as a count per whole period)");
  EXPECT_EQ(parse_rate("0.000000001/s").value(), (Rate{1, Duration{1'000'000'000'000'000'000}}));
  EXPECT_NE(refusal(parse_rate("0.0000000001/s")), "");
  EXPECT_EQ(refusal(parse_rate("0.0000000000000000001/s")),
            R"(rate "0.0000000000000000001/s" has more than 18 digits after the decimal point)");
}

TEST(ParseSize, DistinguishesPowersOf1000From1024) {
  EXPECT_EQ(parse_size("0").value(), 0);
  EXPECT_EQ(parse_size("65536").value(), 65'536);
  EXPECT_EQ(parse_size("1K").value(), 1'000);
  EXPECT_EQ(parse_size("50M").value(), 50'000'000);
  EXPECT_EQ(parse_size("2G").value(), 2'000'000'000);
  EXPECT_EQ(parse_size("64KiB").value(), 65'536);
  EXPECT_EQ(parse_size("1MiB").value(), 1'048'576);
  EXPECT_EQ(parse_size("1GiB").value(), 1'073'741'824);
  EXPECT_EQ(parse_size("9223372036854775807").value(), kMax);
  EXPECT_EQ(parse_size("8589934591GiB").value(), 8'589'934'591 << 30);
}

TEST(ParseSize, ExplainsWhyTheInputIsInvalid) {
  EXPECT_EQ(refusal(parse_size("")), R"(size "" is empty)");
  EXPECT_EQ(refusal(parse_size("-1")), R"(size "-1" must not be negative)");
  EXPECT_EQ(refusal(parse_size("K")), R"(size "K" must begin with digits)");
  EXPECT_EQ(refusal(parse_size("9223372036854775808")), R"(size "9223372036854775808" does not fit 64 bits)");
  EXPECT_EQ(refusal(parse_size("8589934592GiB")), R"(size "8589934592GiB" does not fit 64 bits)");
  for (const std::string_view bad : {"1k", "1KB", "1kib", "1T", "1.5G", "1 K"}) {
    EXPECT_EQ(refusal(parse_size(bad)), "size " + quote(bad) + " has no known unit (K, M, G, KiB, MiB, GiB or none)");
  }
}

TEST(Seconds, ParseAndPrintTheShortestExactDecimal) {
  EXPECT_EQ(print_seconds(0ns), "0");
  EXPECT_EQ(print_seconds(50ms), "0.05");
  EXPECT_EQ(print_seconds(1s), "1");
  EXPECT_EQ(print_seconds(1ns), "0.000000001");
  EXPECT_EQ(print_seconds(10s), "10");
  EXPECT_EQ(print_seconds(-50ms), "-0.05");
  EXPECT_EQ(print_seconds(Duration::max()), "9223372036.854775807");
  EXPECT_EQ(print_seconds(Duration::min()), "-9223372036.854775808");
  EXPECT_EQ(parse_seconds("0.05").value(), 50ms);
  EXPECT_EQ(parse_seconds("1700000000.123456789").value(), 1'700'000'000s + 123'456'789ns);
  EXPECT_EQ(parse_seconds("9223372036.854775807").value(), Duration::max());
  EXPECT_EQ(refusal(parse_seconds("9223372036.854775808")),
            R"(seconds "9223372036.854775808" is longer than 292 years)");
  EXPECT_EQ(refusal(parse_seconds("0.0000000001")), R"(seconds "0.0000000001" is finer than a nanosecond)");
  EXPECT_EQ(refusal(parse_seconds("-1")), R"(seconds "-1" must not be negative)");
  EXPECT_EQ(refusal(parse_seconds("")), R"(seconds "" is empty)");
  for (const std::string_view bad : {"1s", ".5", "1.", "1e3", "1,5"}) {
    EXPECT_EQ(refusal(parse_seconds(bad)),
              "seconds " + quote(bad) + " must be digits, with digits on both sides of a decimal point");
  }
}

TEST(PrintDuration, HasOneCanonicalForm) {
  EXPECT_EQ(print_duration(0ns), "0s");
  EXPECT_EQ(print_duration(180min), "3h");
  EXPECT_EQ(print_duration(90s), "1m30s");
  EXPECT_EQ(print_duration(1500us), "1500us");
  EXPECT_EQ(print_duration(1s + 1ns), "1s1ns");
  EXPECT_EQ(print_duration(1500ms), "1s500ms");
  EXPECT_EQ(print_duration(168h), "7d");
  EXPECT_EQ(print_duration(25h), "1d1h");
  EXPECT_EQ(print_duration(-90s), "-1m30s");
  EXPECT_EQ(print_duration(Duration::max()), "106751d23h47m16s854775807ns");
  EXPECT_EQ(print_duration(Duration::min()), "-106751d23h47m16s854775808ns");
}

// Ticks of every magnitude, not only the huge ones a uniform choice gives.
rc::Gen<Duration> any_duration() {
  return rc::gen::map(rc::gen::pair(rc::gen::inRange<std::int64_t>(0, kMax), rc::gen::inRange(0, 63)),
                      [](const auto& pick) { return Duration{pick.first >> pick.second}; });
}

TEST(Text, EveryDurationSurvivesPrintingAndParsing) {
  EXPECT_TRUE(rc::check([] {
    const Duration d = *any_duration();
    const Duration round = d - d % *rc::gen::element<Duration>(1ns, 1us, 1ms, 1s, 1min, 1h, 24h);
    for (const Duration each : {d, round}) {
      RC_ASSERT(parse_duration(print_duration(each)).value() == each);
      RC_ASSERT(parse_seconds(print_seconds(each)).value() == each);
    }
  }));
}

TEST(Text, EveryIntegerSurvivesPrintingAndParsing) {
  EXPECT_TRUE(rc::check([](std::int64_t n) { RC_ASSERT(parse_integer(std::to_string(n)).value() == n); }));
}

TEST(Quote, EscapesWhatCouldGarbleALine) {
  EXPECT_EQ(quote("plain"), R"("plain")");
  EXPECT_EQ(quote("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quote("a\nb\x1b[31m\x7f"), R"("a\x0ab\x1b[31m\x7f")");
  EXPECT_EQ(quote(std::string_view("\0", 1)), R"("\x00")");
  EXPECT_EQ(quote("50\u00b5s \u20ac \U0001f600"), "\"50\u00b5s \u20ac \U0001f600\"");
  EXPECT_EQ(quote("\xff\xc2\xc2\x9f\xed\xa0\x80\xf4\x90\x80\x80\xe0\x80\x80"),
            R"("\xff\xc2\xc2\x9f\xed\xa0\x80\xf4\x90\x80\x80\xe0\x80\x80")");
}

TEST(Quote, TruncatesALongValueBetweenCharacters) {
  EXPECT_EQ(quote(std::string(80, 'x')), '"' + std::string(80, 'x') + '"');
  EXPECT_EQ(quote(std::string(81, 'x')), '"' + std::string(80, 'x') + "\"...");
  EXPECT_EQ(quote(std::string(79, 'x') + "\u20ac!"), '"' + std::string(79, 'x') + "\u20ac\"...");
}

TEST(AppendSeconds, AppendsToTheString) {
  std::string out = "100";
  append_seconds(std::chrono::milliseconds{100}, out);
  append_integer(INT64_MIN, out);
  append_seconds(Duration{-1}, out);
  EXPECT_EQ(out, "1000.1-9223372036854775808-0.000000001");
}

TEST(PrintInstant, WritesRfc3339InUtc) {
  EXPECT_EQ(print_instant(Wall{}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(print_instant(Wall{std::chrono::sys_days{std::chrono::year{2027} / 2 / 3}} + std::chrono::hours{4} +
                          std::chrono::milliseconds{5}),
            "2027-02-03T04:00:00.005Z");
  EXPECT_EQ(print_instant(Wall{std::chrono::nanoseconds{999'999}}), "1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace weir::text_test
