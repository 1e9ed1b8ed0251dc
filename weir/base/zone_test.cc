#include "weir/base/zone.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/posix_tz.h"

namespace weir::zone_test {
namespace {

using namespace std::chrono;
using namespace std::chrono_literals;

Zone zone(std::string_view name) {
  Result<Zone> loaded = Zone::load(name);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().detail);
  return loaded ? *loaded : Zone();
}

Local local(int y, unsigned m, unsigned d, seconds time = 0s) {
  return local_days{year{y} / month{m} / day{d}} + time;
}

Wall utc(int y, unsigned m, unsigned d, seconds time = 0s) {
  return sys_days{year{y} / month{m} / day{d}} + time;
}

// The offsets just before and at an instant where the clocks change.
void expect_change(const Zone& z, Wall at, seconds before, seconds after) {
  EXPECT_EQ(z.offset_at(at - 1ns), before) << z.name();
  EXPECT_EQ(z.offset_at(at), after) << z.name();
}

std::string big_endian(std::int64_t v, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(v >> (8 * i)));
  return out;
}

// The content of a generated file: change i goes to offset i + 1.
struct Sketch {
  char version = '2';
  std::vector<std::int64_t> changes{};
  std::vector<int> offsets{0};  // the first is before all changes
  std::string footer = "\nXXX0\n";
  int leaps = 0;
};

std::string block(const Sketch& sketch, int time_bytes) {
  std::string out = "TZif" + std::string(1, sketch.version) + std::string(15, '\0');
  const auto types = static_cast<std::int64_t>(sketch.offsets.size());
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{0}, std::int64_t{sketch.leaps},
                                   static_cast<std::int64_t>(sketch.changes.size()), types, std::int64_t{4}}) {
    out += big_endian(count, 4);
  }
  for (const std::int64_t at : sketch.changes) out += big_endian(at, time_bytes);
  for (std::size_t i = 0; i < sketch.changes.size(); ++i) out.push_back(static_cast<char>(i + 1));
  for (const int offset : sketch.offsets) out += big_endian(offset, 4) + std::string(2, '\0');
  out += std::string("XXX\0", 4);
  return out + std::string(static_cast<std::size_t>(sketch.leaps * (time_bytes + 4)), '\0');
}

std::string file(const Sketch& sketch) {
  if (sketch.version < '2') return block(sketch, 4);
  Sketch empty;
  empty.version = sketch.version;
  return block(empty, 4) + block(sketch, 8) + sketch.footer;
}

TEST(Zone, UtcNeedsNoFile) {
  const Zone z = Zone::load("UTC").value();
  EXPECT_EQ(z.name(), "UTC");
  EXPECT_EQ(z.offset_at(utc(2024, 7, 1)), 0s);
  EXPECT_EQ(z.to_wall(local(2024, 7, 1, 5h)), utc(2024, 7, 1, 5h));
  EXPECT_EQ(z.to_local(utc(2024, 7, 1) - 1ns), local(2024, 6, 30, 24h - 1s));
}

TEST(Zone, FindsChangesOfTheClocks) {
  expect_change(zone("Europe/London"), utc(2024, 3, 31, 1h), 0h, 1h);
  expect_change(zone("Europe/London"), utc(2024, 10, 27, 1h), 1h, 0h);
  expect_change(zone("America/New_York"), utc(2024, 3, 10, 7h), -5h, -4h);
  expect_change(zone("America/New_York"), utc(2024, 11, 3, 6h), -4h, -5h);
  expect_change(zone("Australia/Lord_Howe"), utc(2024, 4, 6, 15h), 11h, 10h + 30min);
  expect_change(zone("Australia/Lord_Howe"), utc(2024, 10, 5, 15h + 30min), 10h + 30min, 11h);
  expect_change(zone("America/Sao_Paulo"), utc(2018, 11, 4, 3h), -3h, -2h);
  expect_change(zone("Africa/Casablanca"), utc(2024, 3, 10, 2h), 1h, 0h);
  expect_change(zone("Africa/Casablanca"), utc(2024, 4, 14, 2h), 0h, 1h);
  EXPECT_EQ(zone("Asia/Kolkata").offset_at(utc(2024, 7, 1)), 5h + 30min);
}

TEST(Zone, UsesTheRuleAfterTheTable) {
  expect_change(zone("Europe/London"), utc(2090, 3, 26, 1h), 0h, 1h);
  expect_change(zone("Europe/London"), utc(2090, 10, 29, 1h), 1h, 0h);
  expect_change(zone("America/New_York"), utc(2200, 3, 9, 7h), -5h, -4h);
}

TEST(Zone, SkippedMidnightIsTheFirstInstantAfterTheGap) {
  const Zone z = zone("America/Sao_Paulo");
  EXPECT_EQ(z.to_wall(local(2018, 11, 4)), utc(2018, 11, 4, 3h));
  EXPECT_EQ(z.to_local(utc(2018, 11, 4, 3h)), local(2018, 11, 4, 1h));
  EXPECT_EQ(z.to_wall(local(2018, 11, 4, 59min + 59s)), utc(2018, 11, 4, 3h));
  EXPECT_EQ(z.to_wall(local(2018, 11, 4, 1h)), utc(2018, 11, 4, 3h));
  EXPECT_EQ(z.to_wall(local(2018, 11, 4) - 1s), utc(2018, 11, 4, 3h - 1s));
}

TEST(Zone, RepeatedMidnightIsTheFirstOne) {
  const Zone z = zone("America/Havana");
  EXPECT_EQ(z.to_wall(local(2024, 11, 3)), utc(2024, 11, 3, 4h));
  EXPECT_EQ(z.to_local(utc(2024, 11, 3, 4h)), local(2024, 11, 3));
  EXPECT_EQ(z.to_local(utc(2024, 11, 3, 5h)), local(2024, 11, 3));
  EXPECT_EQ(z.to_wall(local(2024, 11, 3, 1h)), utc(2024, 11, 3, 6h));
}

TEST(Zone, SkippedDayIsTheNextDay) {
  // Samoa skipped a Friday.
  const Zone z = zone("Pacific/Apia");
  EXPECT_EQ(z.to_wall(local(2011, 12, 30)), z.to_wall(local(2011, 12, 31)));
  EXPECT_EQ(z.to_wall(local(2011, 12, 31)), utc(2011, 12, 30, 10h));
}

TEST(Zone, StaysInsideTheRangeOfWall) {
  for (const Zone& z : {Zone(), zone("America/New_York"), zone("Asia/Kolkata")}) {
    EXPECT_GT(z.to_wall(Local::max()), utc(2262, 1, 1));
    EXPECT_LT(z.to_wall(Local::min()), utc(1678, 1, 1));
    EXPECT_GT(z.to_local(Wall::max()), local(2262, 1, 1));
    EXPECT_LT(z.to_local(Wall::min()), local(1678, 1, 1));
  }
}

TEST(Zone, RefusesNamesThatAreNotZones) {
  for (const std::string_view bad :
       {"", "/etc/passwd", "../etc/passwd", "Europe/../../etc/passwd", "Europe/./London", "Europe//London",
        "Europe/London/", ".", "..", "Europe\\London", "Europe London"}) {
    const auto refused = Zone::load(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().fault, Fault::invalid) << bad;
    EXPECT_NE(refused.error().detail.find(bad == "Europe\\London" ? R"(Europe\\London)" : bad), std::string::npos);
  }
  EXPECT_EQ(Zone::load(std::string_view("UTC\0", 4)).error().detail,
            R"(time zone "UTC\x00" must be a name like Europe/London or UTC)");
  EXPECT_EQ(Zone::load("Europe/Atlantis").error().fault, Fault::unknown);
  EXPECT_EQ(Zone::load("Europe").error().fault, Fault::unknown) << "a directory";
  EXPECT_EQ(Zone::load(std::string(bounds::zone_name_bytes_max, 'x')).error().fault, Fault::unknown);
  EXPECT_EQ(Zone::load(std::string(bounds::zone_name_bytes_max + 1, 'x')).error().fault, Fault::invalid);
}

TEST(Zone, SpansLastFromOneChangeToTheNext) {
  const ZoneSpan summer = zone("Europe/London").span_at(utc(2024, 7, 1));
  EXPECT_EQ(summer.start, utc(2024, 3, 31, 1h));
  EXPECT_EQ(summer.end, utc(2024, 10, 27, 1h));
  EXPECT_EQ(summer.offset, 1h);
  const ZoneSpan far_winter = zone("Europe/London").span_at(utc(2090, 1, 1));
  EXPECT_EQ(far_winter.start, utc(2089, 10, 30, 1h));
  EXPECT_EQ(far_winter.end, utc(2090, 3, 26, 1h));
  EXPECT_EQ(Zone().span_at(utc(2024, 7, 1)).start, Wall::min());
  EXPECT_EQ(Zone().span_at(utc(2024, 7, 1)).end, Wall::max());
  const Zone fixed = Zone::parse("Fixed", file({.offsets = {3600}, .footer = "\n\n"})).value();
  EXPECT_EQ(fixed.span_at(Wall::min()).start, Wall::min());
  EXPECT_EQ(fixed.span_at(Wall::min()).end, Wall::max());
}

TEST(Zone, ReadsEveryZoneOfTheSystem) {
  namespace fs = std::filesystem;
  const fs::path root = "/usr/share/zoneinfo";
  int read = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string name = fs::relative(entry.path(), root).string();
    if (!entry.is_regular_file() || name.starts_with("right/")) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string magic(4, '\0');
    if (!in.read(magic.data(), 4) || magic != "TZif") continue;
    EXPECT_TRUE(Zone::load(name)) << name;
    ++read;
  }
  EXPECT_GT(read, 300);
}

// glibc reads the same files with its own code.
TEST(Zone, AgreesWithTheCLibrary) {
  constexpr std::array names{
      "Europe/London",     "America/New_York", "Asia/Kolkata",    "Australia/Lord_Howe", "America/Sao_Paulo",
      "Africa/Casablanca", "Europe/Dublin",    "Asia/Kathmandu",  "Pacific/Apia",        "Pacific/Chatham",
      "America/Havana",    "America/St_Johns", "Asia/Tehran",     "Africa/Cairo",        "America/Nuuk",
      "Asia/Gaza",         "Antarctica/Troll", "Asia/Pyongyang",  "Europe/Istanbul",     "Pacific/Kiritimati",
      "America/Caracas",   "Europe/Lisbon",    "Africa/Monrovia", "Asia/Tokyo",
  };
  const char* before = std::getenv("TZ");
  const std::string kept = before != nullptr ? before : "";
  std::mt19937_64 random(42);
  for (const char* name : names) {
    setenv("TZ", name, 1);
    tzset();
    const Zone z = zone(name);
    for (int i = 0; i < 4000; ++i) {
      const auto t = std::uniform_int_distribution<std::time_t>(0, 4'102'444'800)(random);  // 1970 to 2100
      std::tm tm{};
      localtime_r(&t, &tm);
      ASSERT_EQ(z.offset_at(Wall{seconds{t}}).count(), tm.tm_gmtoff) << name << " at " << t;
    }
  }
  before != nullptr ? setenv("TZ", kept.c_str(), 1) : unsetenv("TZ");
  tzset();
}

TEST(Zone, ToWallReturnsTheFirstInstantWithThatLocalTimeOrLater) {
  const std::vector<Zone> zones{zone("Europe/London"),  zone("Australia/Lord_Howe"), zone("Pacific/Apia"),
                                zone("America/Havana"), zone("Africa/Casablanca"),   Zone()};
  EXPECT_TRUE(rc::check([&] {
    const Zone z = *rc::gen::elementOf(zones);
    const Local wanted{seconds{*rc::gen::inRange<std::int64_t>(0, 4'102'444'800)}};
    const Wall found = z.to_wall(wanted);
    RC_ASSERT(z.to_local(found) >= wanted);
    // In the two days before, which is more than any offset, the clocks never showed it.
    for (Duration back = 1ns; back < 48h; back += 7min) RC_ASSERT(z.to_local(found - back) < wanted);
    RC_ASSERT(z.to_wall(wanted + seconds{*rc::gen::inRange(0, 100'000)}) >= found);
  }));
}

std::string refusal(const Sketch& sketch) {
  const auto parsed = Zone::parse("Test/Zone", file(sketch));
  return parsed ? "" : parsed.error().detail;
}

TEST(Zone, ReadsTheFirstVersionOfTheFormat) {
  const Zone z =
      Zone::parse("Old", file({.version = '\0', .changes = {100, 200}, .offsets = {-3600, 0, 7200}})).value();
  expect_change(z, Wall{100s}, -1h, 0h);
  expect_change(z, Wall{200s}, 0h, 2h);
  EXPECT_EQ(z.offset_at(utc(2100, 1, 1)), 2h);
  EXPECT_EQ(z.name(), "Old");
}

TEST(Zone, ReadsLaterVersionsAndPrefersTheirRule) {
  for (const char version : {'2', '3', '4', '5'}) {
    const Zone z = Zone::parse("New", file({.version = version,
                                            .changes = {-10'000'000'000, 0},
                                            .offsets = {-3600, 0, 7200},
                                            .footer = "\n<+01>-1\n"}))
                       .value();
    expect_change(z, Wall{0s}, 0h, 1h);
    EXPECT_EQ(z.offset_at(Wall::min()), 0h);
  }
  EXPECT_EQ(Zone::parse("NoRule", file({.changes = {0}, .offsets = {0, 7200}, .footer = "\n\n"}))
                .value()
                .offset_at(utc(2100, 1, 1)),
            2h);
}

TEST(Zone, ExplainsWhyAFileIsInvalid) {
  const std::string start = R"(time zone "Test/Zone" cannot be read: )";
  EXPECT_EQ(Zone::parse("Test/Zone", "").error().detail, start + "it is not a TZif file");
  EXPECT_EQ(Zone::parse("Test/Zone", std::string(100, 'x')).error().detail, start + "it is not a TZif file");
  EXPECT_EQ(refusal({.offsets = {}}), start + "it has no local time");
  EXPECT_EQ(refusal({.leaps = 1}), start + "it counts leap seconds, which the system's clock does not");
  EXPECT_EQ(refusal({.changes = {5, 5}, .offsets = {0, 0, 0}}), start + "its changes are not in order");
  EXPECT_EQ(refusal({.changes = {5}}), start + "a change names a local time that is not there");
  EXPECT_EQ(refusal({.footer = ""}), start + "its footer is missing");
  EXPECT_EQ(refusal({.footer = "\nXXX0"}), start + "its footer is cut off");
  EXPECT_EQ(refusal({.footer = "\nX0\n"}), start + R"(its footer "X0" is not a POSIX TZ rule)");
  EXPECT_EQ(refusal({.offsets = {93'599}}), "");
  EXPECT_EQ(refusal({.offsets = {93'600}}), start + "an offset exceeds 26 hours");
  EXPECT_EQ(refusal({.offsets = {-89'999}}), "");
  EXPECT_EQ(refusal({.offsets = {-90'000}}), start + "an offset exceeds 26 hours");
}

TEST(Zone, ReadsFilesUpToTheLimit) {
  std::string bytes = file({});
  bytes.resize(bounds::zone_bytes_max, 'x');  // bytes after the footer are ignored
  EXPECT_TRUE(Zone::parse("Full", bytes));
  bytes.push_back('x');
  EXPECT_EQ(Zone::parse("Fuller", bytes).error().fault, Fault::too_large);
}

TEST(Zone, RefusesAFileTruncatedAnywhere) {
  std::ifstream in("/usr/share/zoneinfo/Europe/London", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(bytes.size(), 100u);
  ASSERT_TRUE(Zone::parse("London", bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy on the heap of exactly this size, so that AddressSanitizer detects a read past its end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(Zone::parse("London", std::string_view(cut.data(), cut.size()))) << size;
  }
}

bool is_rule(std::string_view text) {
  return PosixTz::parse(text).has_value();
}

TEST(PosixTz, AcceptsOnlyTheGrammar) {
  for (const std::string_view good :
       {"UTC0", "EST5EDT,M3.2.0,M11.1.0", "<+0330>-3:30", "IST-1GMT0,M10.5.0,M3.5.0/1",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "EST5EDT,J60,J365/167:59:59", "EST5EDT,0/0,365/-167", "AAA24",
        "AAA-24:59:59BBB"
        "-24:59:59,J1,J2"}) {
    EXPECT_TRUE(is_rule(good)) << good;
  }
  for (const std::string_view bad : {"",
                                     "U0",
                                     "UTC",
                                     "UTC25",
                                     "UTC0:60",
                                     "UTC0:00:60",
                                     "<UTC0",
                                     "EST5EDT",
                                     "EST5EDT,M3.2.0",
                                     "EST5EDT,M3.2.0,",
                                     "EST5EDT,M13.2.0,M11.1.0",
                                     "EST5EDT,M3.6.0,M11.1.0",
                                     "EST5EDT,M3.0.0,M11.1.0",
                                     "EST5EDT,M3.2.7,M11.1.0",
                                     "EST5EDT,J0,J1",
                                     "EST5EDT,J366,J1",
                                     "EST5EDT,366,1",
                                     "EST5EDT,M3.2.0/168,M11.1.0",
                                     "EST5EDT,M3.2.0,M11.1.0,",
                                     "UTC99999999999999999999",
                                     "UTC0:",
                                     "EST5EDT,M3.2.0/,M11.1.0"}) {
    EXPECT_FALSE(is_rule(bad)) << bad;
  }
}

TEST(PosixTz, CountsDaysOfTheYearInBothWays) {
  // J60 is always March 1; 60 is March 1 in leap years and March 2 in others.
  const PosixTz julian = *PosixTz::parse("AAA0BBB,J60/0,J300");
  const PosixTz zero_based = *PosixTz::parse("AAA0BBB,60/0,300");
  const auto seconds_of = [](Wall wall) { return floor<seconds>(wall).time_since_epoch().count(); };
  EXPECT_EQ(julian.span_at(seconds_of(utc(2023, 2, 1))).until, seconds_of(utc(2023, 3, 1)));
  EXPECT_EQ(julian.span_at(seconds_of(utc(2024, 2, 1))).until, seconds_of(utc(2024, 3, 1)));
  EXPECT_EQ(zero_based.span_at(seconds_of(utc(2023, 2, 1))).until, seconds_of(utc(2023, 3, 2)));
  EXPECT_EQ(zero_based.span_at(seconds_of(utc(2024, 2, 1))).until, seconds_of(utc(2024, 3, 1)));
}

TEST(PosixTz, SummerTimeCanLastAllYear) {
  const PosixTz tz = *PosixTz::parse("EST5EDT,0/0,J365/25");
  for (std::int64_t t = 0; t < 4'102'444'800; t += 12'347) ASSERT_EQ(tz.span_at(t).offset, -4 * 3600) << t;
  const std::int64_t new_year = utc(2025, 1, 1, 5h).time_since_epoch() / 1s;
  for (std::int64_t t = new_year - 7200; t < new_year + 7200; ++t) ASSERT_EQ(tz.span_at(t).offset, -4 * 3600) << t;
}

}  // namespace
}  // namespace weir::zone_test
