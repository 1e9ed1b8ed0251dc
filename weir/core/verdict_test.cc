#include "weir/core/verdict.h"

#include <gtest/gtest.h>

namespace weir::verdict_test {
namespace {

using namespace std::chrono_literals;

TEST(Verdict, WithoutDecisionsAllows) {
  const Verdict verdict;
  EXPECT_TRUE(verdict.allowed);
  EXPECT_FALSE(verdict.degraded);
  EXPECT_TRUE(verdict.all.empty());
}

TEST(Decisions, KeepTheirOrder) {
  Decisions decisions;
  decisions.push_back(Decision{true, 5, 4, 0ns, 1s});
  decisions.push_back(Decision{false, 1, 0, 1s, 1s});
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].strictest().remaining, 4);
  decisions[1] = Decision{true, 9, 7, 0ns, 1s};
  Count sum = 0;
  for (const LimitDecision& decision : decisions) sum += decision.strictest().remaining;
  EXPECT_EQ(sum, 11);
}

constexpr Decision kPasses{true, 5, 4, 0ns, 1s};
constexpr Decision kTighter{true, 3, 2, 0ns, 1h};
constexpr Decision kDenies{false, 5, 0, 1s, 1s};

TEST(LimitDecision, OfOneHalfIsThatHalfs) {
  const LimitDecision rate(kPasses);
  EXPECT_EQ(rate.strictest(), kPasses);
  EXPECT_EQ(*rate.half(Kind::bucket), kPasses);
  EXPECT_EQ(rate.half(Kind::quota), nullptr);
  const LimitDecision quota(kDenies, Kind::quota);
  EXPECT_FALSE(quota.allowed());
  EXPECT_EQ(quota.stricter(), Kind::quota);
  EXPECT_EQ(quota.half(Kind::bucket), nullptr);
  EXPECT_EQ(*quota.half(Kind::quota), kDenies);
}

TEST(LimitDecision, OfARateAndAQuotaIsTheStrictersAndTheRatesIfTheyAreEqual) {
  const LimitDecision quota(kPasses, kTighter);
  EXPECT_EQ(quota.strictest(), kTighter);
  EXPECT_EQ(quota.stricter(), Kind::quota);
  EXPECT_EQ(*quota.half(Kind::bucket), kPasses);
  EXPECT_EQ(LimitDecision(kTighter, kPasses).stricter(), Kind::bucket);
  EXPECT_EQ(LimitDecision(kPasses, kPasses).stricter(), Kind::bucket);
  EXPECT_FALSE(LimitDecision(kDenies, kTighter).allowed());
  EXPECT_FALSE(LimitDecision(kTighter, kDenies).allowed());
}

TEST(DecisionsDeathTest, HoldAsManyAsARequestMayChargeAndNotOneMore) {
  Decisions decisions;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) decisions.push_back({});
  EXPECT_EQ(decisions.size(), bounds::charges_max);
  EXPECT_DEATH(decisions.push_back({}), "size_ < N");
}

TEST(DecisionsDeathTest, AbortOnAnIndexThatIsNotThere) {
  Decisions decisions;
  decisions.push_back({});
  EXPECT_DEATH(static_cast<void>(decisions[1]), "i < size_");
}

}  // namespace
}  // namespace weir::verdict_test
