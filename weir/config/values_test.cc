#include "weir/config/values.h"

#include <gtest/gtest.h>

#include "weir/base/bounds.h"

namespace weir::config::values_test {
namespace {

TEST(Values, DaysAreRangesAndListsAndMayWrapTheWeek) {
  EXPECT_EQ(*parse_days("mon-fri"), 0b0111110);
  EXPECT_EQ(*parse_days("sat,sun"), 0b1000001);
  EXPECT_EQ(*parse_days("fri-mon"), 0b1100011);
  EXPECT_EQ(*parse_days("tue, thu-fri"), 0b0110100);
  EXPECT_EQ(*parse_days("mon-sun"), 0b1111111);
  EXPECT_EQ(*parse_days("wed"), 0b0001000);
  for (const char* bad : {"", ",", "mon,", "mon-", "-mon", "Mon", "monday", "mon fri", "mon-fri-sat"}) {
    EXPECT_FALSE(parse_days(bad)) << bad;
  }
}

TEST(Values, DaysReadBackWhatIsPrinted) {
  for (int days = 1; days < 128; ++days) {
    const auto mask = static_cast<std::uint8_t>(days);
    EXPECT_EQ(*parse_days(print_days(mask)), mask) << print_days(mask);
  }
}

TEST(Values, HoursMayCrossMidnightAndEndAt24) {
  EXPECT_EQ(*parse_hours("09:00-18:00"), (Hours{540, 1080}));
  EXPECT_EQ(*parse_hours("22:30-06:00"), (Hours{1350, 360}));
  EXPECT_EQ(*parse_hours("00:00-24:00"), (Hours{0, 1440}));
  EXPECT_EQ(*parse_hours("12:00-00:00"), (Hours{720, 0}));
  EXPECT_EQ(print_hours({1350, 360}), "22:30-06:00");
  for (const char* bad : {"", "9:00-18:00", "09:00", "09:00-24:01", "09:60-10:00", "24:00-01:00", "09:00-09:00",
                          "09:00_18:00", "0a:00-18:00", "09:00-18:00 "}) {
    EXPECT_FALSE(parse_hours(bad)) << bad;
  }
}

TEST(Values, QuotasHoldAtTheirBoundsAndNotOnePastThem) {
  EXPECT_EQ(*parse_quota("100000/month"), (QuotaText{100000, Calendar::month}));
  EXPECT_EQ(*parse_quota("5 per day"), (QuotaText{5, Calendar::day}));
  EXPECT_EQ(*parse_quota("1/hour"), (QuotaText{1, Calendar::hour}));
  for (const std::string_view spaced : {"5 / day", "5/ day", "5 /day", "5  per  day"}) {
    EXPECT_EQ(*parse_quota(spaced), (QuotaText{5, Calendar::day})) << spaced;
  }
  EXPECT_EQ(parse_quota(std::to_string(bounds::quota_max) + "/week")->size, bounds::quota_max);
  EXPECT_FALSE(parse_quota(std::to_string(bounds::quota_max + 1) + "/week"));
  for (const char* bad :
       {"", "5", "0/day", "-1/day", "/day", "5/", "5/s", "5/days", "1.5/day", "99999999999999999999/day"}) {
    EXPECT_FALSE(parse_quota(bad)) << bad;
  }
}

TEST(Values, AShareIsOneOfSoManyServers) {
  EXPECT_EQ(*parse_share("1/1"), 1);
  EXPECT_EQ(*parse_share("1/" + std::to_string(bounds::share_max)), bounds::share_max);
  for (const std::string bad :
       {"", "1", "1/", "1/0", "1/-1", "2/4", "1/4 ", "0.25", "1/10001", "1/99999999999999999999"}) {
    EXPECT_FALSE(parse_share(bad)) << bad;
  }
}

TEST(Values, KeySourcesAreThoseOfTheModel) {
  for (const char* good : {"ip", "apikey", "header:x-tenant-id", "cookie:idx", "query:q", "form:email", "path",
                           "path:1", "path:64", "method", "host", "descriptor:user", "global"}) {
    EXPECT_TRUE(check_key_source(good)) << good;
  }
  for (const char* bad : {"", "IP", "ip:", "header", "header:", "header:a b", "cookie:a;b", "query:", "path:0",
                          "path:65", "path:x", "body:x", "form:a b"}) {
    EXPECT_FALSE(check_key_source(bad)) << bad;
  }
}

TEST(Values, InstantsAreExactAndInUtc) {
  using namespace std::chrono;
  EXPECT_EQ(*parse_instant("2027-01-01T00:00:00Z"), Wall{sys_days{year{2027} / 1 / 1}});
  EXPECT_EQ(*parse_instant("2024-02-29T23:59:59Z"), Wall{sys_days{year{2024} / 2 / 29} + 23h + 59min + 59s});
  EXPECT_EQ(*parse_instant("2027-01-01T00:00:00.250Z"), Wall{sys_days{year{2027} / 1 / 1} + 250ms});
  for (const char* bad : {"", "2027-01-01", "2027-01-01T00:00:00", "2027-01-01T00:00:00.Z", "2027-01-01T00:00:00.25xZ",
                          "2027-02-29T00:00:00Z", "2027-13-01T00:00:00Z", "2027-01-01T24:00:00Z",
                          "2027-01-01 00:00:00Z", "2027-01-01T00:00:60Z", "9999-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_instant(bad)) << bad;
  }
}

TEST(Values, NamesHoldAt63BytesAndNotAt64) {
  EXPECT_TRUE(is_name("a"));
  EXPECT_TRUE(is_name("Per-IP_v2.1"));
  EXPECT_TRUE(is_name(std::string(63, 'n')));
  EXPECT_FALSE(is_name(std::string(64, 'n')));
  for (const char* bad : {"", "a b", "a:b", "a/b", "\xc3\xa4"}) EXPECT_FALSE(is_name(bad)) << bad;
}

}  // namespace
}  // namespace weir::config::values_test
