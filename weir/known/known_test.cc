#include "weir/known/known.h"

#include <gtest/gtest.h>

#include <chrono>

namespace weir::known_test {
namespace {

using namespace std::chrono_literals;

constexpr Wall kNow{1000s};

Adjustment adjustment(std::string limit, std::string id) {
  Adjustment one;
  one.limit = std::move(limit);
  one.id = std::move(id);
  one.expires = kNow + 1h;
  return one;
}

TEST(Adjustment, ChangesTheGivenValuesAndKeepsTheRest) {
  const Limit own = Limit::per_second(10).with_burst(20);
  Adjustment one = adjustment("a", "b");
  one.burst = 50;
  EXPECT_EQ(*adjusted(one, &own), Limit::per_second(10).with_burst(50));
  one.count = 200;
  one.burst.reset();
  EXPECT_EQ(*adjusted(one, &own), Limit::per_second(200).with_burst(20));
  one.period = 1min;
  EXPECT_EQ(*adjusted(one, &own), Limit::per_minute(200).with_burst(20));
}

TEST(Adjustment, NeedsCountAndPeriodIfTheLimitHasNoNumbers) {
  Adjustment one = adjustment("a", "b");
  one.burst = 5;
  EXPECT_FALSE(adjusted(one, nullptr));
  one.burst.reset();
  one.count = 7;
  one.period = 1s;
  EXPECT_EQ(*adjusted(one, nullptr), Limit::per_second(7)) << "the burst is the count";
}

TEST(Adjustment, RejectsInvalidNumbers) {
  const Limit own = Limit::per_second(10);
  Adjustment one = adjustment("a", "b");
  one.burst = 0;
  EXPECT_FALSE(adjusted(one, &own));
}

TEST(Adjustments, AreFoundByLimitAndIdUntilTheyExpire) {
  const Adjustments all({adjustment("a", "1"), adjustment("b", "1")});
  EXPECT_EQ(all.find({"a", "1"}, kNow), &all.all()[0]);
  EXPECT_EQ(all.find({"b", "1"}, kNow), &all.all()[1]);
  EXPECT_EQ(all.find({"a", "2"}, kNow), nullptr);
  EXPECT_NE(all.find({"a", "1"}, kNow + 1h - 1ns), nullptr);
  EXPECT_EQ(all.find({"a", "1"}, kNow + 1h), nullptr);
}

TEST(Known, IsEmptyAtFirst) {
  const Known known;
  EXPECT_EQ(known.adjustments().find({"a", "1"}, kNow), nullptr);
  EXPECT_TRUE(known.entries().empty());
  EXPECT_TRUE(known.blocks().empty());
}

}  // namespace
}  // namespace weir::known_test
