#include "weir/store/failover/fallback.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::fallback_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwo = Limit::per_hour(2);
constexpr Limit kEight = Limit::per_hour(8);
constexpr Quota kFour{4, {Wall{960'000s}, Wall{1'046'400s}}, Wall{1'132'800s}};

Charge of(std::string_view key, const Limit& limit, FailurePolicy policy, Count cost = 1, bool shadow = false) {
  Charge charge;
  charge.limit_name = key;
  charge.rate = RateCharge{key, limit};
  charge.cost = cost;
  charge.shadow = shadow;
  charge.on_failure = policy;
  return charge;
}

class FallbackTest : public testing::Test {
 protected:
  static constexpr FailurePolicy pass = FailurePolicy::pass_through;
  static constexpr FailurePolicy closed = FailurePolicy::fail_closed;
  static constexpr FailurePolicy local = FailurePolicy::in_memory_fallback;

  Result<Verdict> ask(std::vector<Charge> charges, Order order = Order::together, Mode mode = Mode::spend) {
    return Fallback(*table_, share_, counts_, clock_).decide({1, charges, mode, order}, clock_.now());
  }
  Count left(std::string_view key, const Limit& limit) {
    return table_->peek(table_->hash(Key{key}), limit, 0, clock_.now().time).remaining;
  }

  Count share_ = 1;
  FallbackCounts counts_;
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{3, 4}));
  ManualClock clock_{Time{10s}, Wall{1'000'000s}};
};

TEST_F(FallbackTest, PassThroughAllowsEverythingAndSaysThatItIsDegraded) {
  for (int i = 0; i < 100; ++i) {
    const auto verdict = ask({of("a", kTwo, pass)});
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(verdict->allowed);
    EXPECT_TRUE(verdict->degraded);
    EXPECT_EQ(verdict->all[0].strictest().burst, 2);
    EXPECT_EQ(verdict->all[0].strictest().remaining, 1);
  }
  EXPECT_EQ(table_->stats().buckets, 0u) << "nothing is kept";
  EXPECT_EQ(counts_.of(pass), 100u);
}

TEST_F(FallbackTest, PassThroughStillDeniesACostThatNoBucketCouldGive) {
  const auto verdict = ask({of("a", kTwo, pass, 3)});
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->allowed);
  EXPECT_EQ(verdict->all[0].strictest().retry_after, kNever);
}

TEST_F(FallbackTest, PassThroughTakesARequestWithoutLimits) {
  const auto verdict = ask({});
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->allowed);
}

TEST_F(FallbackTest, FailClosedIsAnErrorWithTheLimitsOwnCode) {
  Charge charge = of("a", kTwo, closed);
  EXPECT_EQ(
      ask({charge}).error(),
      (Error{Fault::unavailable, "the store is unavailable and failure_policy for limit \"a\" is failClosed", 0}));
  charge.failure_code = 503;
  EXPECT_EQ(ask({charge}).error().code, 503);
  charge.limit_name = "";
  EXPECT_EQ(ask({charge}).error().detail, "the store is unavailable and failure_policy is failClosed");
  EXPECT_EQ(counts_.of(closed), 3u);
}

TEST_F(FallbackTest, CountsNeitherProbesNorWhatOperatorsLookAt) {
  EXPECT_FALSE(ask({of(kProbeBucket, kTwo, closed)}));
  for (const FailurePolicy policy : {pass, closed, local}) {
    (void)ask({of("a", kTwo, policy)}, Order::together, Mode::look);
    EXPECT_EQ(counts_.of(policy), 0u);
  }
}

TEST_F(FallbackTest, InMemoryLimitsHereAndIsMarkedDegraded) {
  EXPECT_TRUE(ask({of("a", kTwo, local)})->allowed);
  EXPECT_TRUE(ask({of("a", kTwo, local)})->allowed);
  const auto third = ask({of("a", kTwo, local)});
  EXPECT_FALSE(third->allowed);
  EXPECT_TRUE(third->degraded);
  EXPECT_EQ(third->all[0].strictest().retry_after, 30min);
  EXPECT_EQ(counts_.of(local), 3u);
}

TEST_F(FallbackTest, InMemoryIsBounded) {
  for (int i = 0; i < 20'000; ++i) EXPECT_TRUE(ask({of("key " + std::to_string(i), kTwo, local)})->allowed);
  EXPECT_LE(table_->stats().buckets, 1000u);
}

TEST_F(FallbackTest, OneThatFailsClosedRefusesTheRequestAndChargesNothing) {
  EXPECT_FALSE(ask({of("a", kTwo, local), of("b", kTwo, closed)}));
  EXPECT_FALSE(ask({of("a", kTwo, local), of("b", kTwo, closed)}, Order::in_order));
  EXPECT_FALSE(ask({of("a", kTwo, pass), of("b", kTwo, closed)}));
  EXPECT_EQ(left("a", kTwo), 2);
}

TEST_F(FallbackTest, AShadowThatFailsClosedRefusesNothing) {
  const auto verdict = ask({of("a", kTwo, local), of("b", kTwo, closed, 1, true)});
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->allowed);
  EXPECT_EQ(verdict->strictest, 0u);
  EXPECT_TRUE(verdict->degraded) << "the shadow was not decided";
}

TEST_F(FallbackTest, LimitsOfDifferentPoliciesAreEachDecidedInTheirPlace) {
  for (int i = 0; i < 2; ++i) {
    const auto verdict = ask({of("a", kEight, pass), of("b", kTwo, local), of("c", kEight, pass)});
    EXPECT_TRUE(verdict->allowed);
    EXPECT_TRUE(verdict->degraded);
    EXPECT_EQ(verdict->all[1].strictest().burst, 2);
  }
  const auto verdict = ask({of("a", kEight, pass), of("b", kTwo, local), of("c", kEight, pass)});
  EXPECT_FALSE(verdict->allowed);
  EXPECT_EQ(verdict->strictest, 1u);
  EXPECT_EQ(verdict->all.size(), 3u);
}

TEST_F(FallbackTest, InOrderStopsAtTheFirstDenialOfEitherKind) {
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask({of("b", kTwo, local)})->allowed);
  const auto here = ask({of("a", kEight, pass), of("b", kTwo, local), of("c", kEight, pass), of("d", kEight, local)},
                        Order::in_order);
  EXPECT_EQ(here->all.size(), 2u);
  EXPECT_EQ(left("d", kEight), 8);
  const auto never = ask({of("d", kEight, local), of("a", kTwo, pass, 3), of("e", kEight, local)}, Order::in_order);
  EXPECT_EQ(never->all.size(), 2u);
  EXPECT_EQ(never->strictest, 1u);
  EXPECT_EQ(left("d", kEight), 7);
  EXPECT_EQ(left("e", kEight), 8);
}

TEST_F(FallbackTest, TogetherChargesNothingWhenOneThatPassesThroughCanNeverPass) {
  const auto verdict = ask({of("d", kEight, local), of("a", kTwo, pass, 3)});
  EXPECT_FALSE(verdict->allowed);
  EXPECT_EQ(verdict->all.size(), 2u);
  EXPECT_EQ(left("d", kEight), 8);
}

TEST_F(FallbackTest, AShareDividesTheNumbersAmongTheServers) {
  share_ = 4;
  EXPECT_TRUE(ask({of("a", kEight, local)})->allowed);
  EXPECT_TRUE(ask({of("a", kEight, local)})->allowed);
  const auto third = ask({of("a", kEight, local)});
  EXPECT_FALSE(third->allowed);
  EXPECT_EQ(third->all[0].strictest().burst, 2);
  EXPECT_EQ(third->all[0].strictest().retry_after, 30min) << "four servers give 8 in an hour";
}

TEST_F(FallbackTest, AShareOfASmallBurstIsOneToken) {
  EXPECT_EQ(divide(kTwo, 3).burst(), 1);
  EXPECT_EQ(divide(kTwo, 3).interval(), 90min);
  EXPECT_EQ(divide(kTwo, 1), *Limit::make(1, 30min, 2));
}

TEST_F(FallbackTest, AShareOfTheLongestBucketDoesNotOverflow) {
  const Limit century = *Limit::make(1, bounds::window_max, 1);
  EXPECT_EQ(divide(century, bounds::share_max).interval(), bounds::window_max);
  const Limit many = *Limit::make(1, bounds::window_max / 10'000, 10'000);
  EXPECT_EQ(divide(many, bounds::share_max).window(), many.window());
}

TEST_F(FallbackTest, ACostThatFitsTheLimitButNotTheShareIsNotRefusedForEver) {
  share_ = 4;
  const auto verdict = ask({of("a", kEight, local, 3)});
  EXPECT_FALSE(verdict->allowed);
  EXPECT_EQ(verdict->all[0].strictest().retry_after, kEight.window());
  EXPECT_EQ(ask({of("a", kEight, local, 9)})->all[0].strictest().retry_after, kNever);
}

TEST_F(FallbackTest, AQuotaFollowsItsPolicyToo) {
  share_ = 2;
  const auto quota = [](FailurePolicy policy) {
    Charge charge = of("q", kTwo, policy);
    charge.rate.reset();
    charge.quota = QuotaCharge{"q", kFour};
    return charge;
  };
  EXPECT_EQ(ask({quota(pass)})->all[0].strictest().remaining, 3);
  EXPECT_EQ(ask({quota(pass)})->all[0].strictest().remaining, 3);
  EXPECT_TRUE(ask({quota(local)})->allowed);
  EXPECT_TRUE(ask({quota(local)})->allowed);
  EXPECT_FALSE(ask({quota(local)})->allowed);
}

TEST_F(FallbackTest, ALimitWithARateAndAQuotaIsOneDecision) {
  const auto both = [](std::string_view key, FailurePolicy policy) {
    Charge charge = of(key, kEight, policy);
    charge.quota = QuotaCharge{key, kFour};
    return charge;
  };
  const auto passed = ask({both("p", pass)});
  ASSERT_EQ(passed->all.size(), 1u);
  EXPECT_EQ(passed->all[0].half(Kind::bucket)->remaining, 7);
  EXPECT_EQ(passed->all[0].half(Kind::quota)->remaining, 3);
  share_ = 2;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask({both("a", local)})->allowed);
  const auto third = ask({both("a", local)});
  ASSERT_EQ(third->all.size(), 1u);
  EXPECT_FALSE(third->allowed);
  EXPECT_EQ(third->all[0].stricter(), Kind::quota);
  EXPECT_EQ(third->all[0].half(Kind::bucket)->remaining, 2) << "the quota denied, so the rate is not charged";
}

TEST_F(FallbackTest, PeekAndRefundFollowThePolicyAndAResetSaysThatItWasNotDone) {
  EXPECT_TRUE(ask({of("a", kTwo, local)})->allowed);
  EXPECT_EQ(ask({of("a", kTwo, local)}, Order::together, Mode::peek)->all[0].strictest().remaining, 1);
  EXPECT_EQ(ask({of("a", kTwo, pass)}, Order::together, Mode::peek)->all[0].strictest().remaining, 2);
  EXPECT_EQ(ask({of("a", kTwo, local)}, Order::together, Mode::refund)->all[0].strictest().remaining, 2);
  EXPECT_EQ(ask({of("a", kTwo, pass)}, Order::together, Mode::refund)->all[0].strictest().remaining, 2);
  EXPECT_TRUE(ask({of("a", kTwo, local)})->allowed);
  EXPECT_EQ(ask({of("a", kTwo, local)}, Order::together, Mode::reset).error().fault, Fault::unavailable);
  Charge own = of("b", kTwo, local);
  own.failure_code = 503;
  EXPECT_EQ(ask({own}, Order::together, Mode::reset).error().code, 503);
  EXPECT_EQ(left("a", kTwo), 2);
}

}  // namespace
}  // namespace weir::fallback_test
