#include "weir/core/limit.h"

#include <gtest/gtest.h>

namespace weir::limit_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kLogin = Limit::per_minute(60).with_burst(10);
static_assert(kLogin.count() == 60 && kLogin.period() == 1min && kLogin.burst() == 10);
static_assert(kLogin.interval() == 1s && kLogin.window() == 10s);
static_assert(Limit::per_second(3).interval() == 333'333'334ns, "the interval rounds up: never faster than promised");
static_assert(Limit::per_second(1'000'000'000).interval() == 1ns);
static_assert(Limit::per_second(5).price(7) == Limit::per_second(5).window(), "a price never exceeds the bucket");

std::string refusal(Count count, Duration period, Count burst) {
  const auto limit = Limit::make(count, period, burst);
  return limit ? "" : limit.error().detail;
}

TEST(Limit, NamesTheFieldThatBreaksARule) {
  EXPECT_EQ(refusal(0, 1s, 1), "count 0 must be at least 1");
  EXPECT_EQ(refusal(-3, 1s, 1), "count -3 must be at least 1");
  EXPECT_EQ(refusal(1, 0s, 1), "period 0 ns must be longer than zero");
  EXPECT_EQ(refusal(1, -1ns, 1), "period -1 ns must be longer than zero");
  EXPECT_EQ(refusal(1, 1s, 0), "burst 0 must be at least 1");
  EXPECT_EQ(refusal(11, 10ns, 1), "count 11 is more than one per nanosecond of the period of 10 ns");
}

TEST(Limit, AcceptsOnePerNanosecondAndNoMore) {
  EXPECT_EQ(refusal(10, 10ns, 1), "");
  EXPECT_NE(refusal(11, 10ns, 1), "");
}

TEST(Limit, AcceptsAWindowOfAHundredYearsAndNotANanosecondMore) {
  EXPECT_EQ(refusal(1, bounds::window_max, 1), "");
  EXPECT_EQ(refusal(1, bounds::window_max + 1ns, 1), "burst 1 would take more than 100 years to refill at this rate");
  EXPECT_EQ(refusal(1, 1ns, bounds::window_max.count()), "");
  EXPECT_NE(refusal(1, 1ns, bounds::window_max.count() + 1), "");
  EXPECT_NE(refusal(1, Duration::max(), std::numeric_limits<Count>::max()), "");
}

TEST(Limit, MadeFromDataEqualsTheSameConstant) {
  EXPECT_EQ(Limit::make(60, 1min, 10).value(), kLogin);
}

}  // namespace
}  // namespace weir::limit_test
