#include "weir/store/redis/leases.h"

#include <gtest/gtest.h>

#include "weir/redis/slots.h"
#include "weir/store/redis/leasing_store.h"

namespace weir::redis::leases_test {
namespace {

using namespace std::chrono_literals;
using Way = Leases::Way;

constexpr Time kStart{1s};
// Interval 1 ms; the shared bucket holds 744.
constexpr Leases::Terms kTerms{Limit::per_second(1000).less(256), Lease{64, 4}};

class LeasesTest : public testing::Test {
 protected:
  Leases::Answer spend(Time now, Count cost = 1) { return leases_.spend(7, kTerms, cost, now); }
  // Spends until the bucket is hot; returns the last answer.
  Leases::Answer heat(Time now) {
    for (Count i = 1; i < kHotAsks; ++i) EXPECT_EQ(spend(now).way, Way::alone);
    return spend(now);
  }
  bool grant(const Leases::Answer& asked, Count tokens, Time sent, Time now) {
    Decision left;
    left.burst = 744;
    left.remaining = 700;
    left.reset_after = 44ms;
    return leases_.granted(7, asked.serial, tokens, left, sent, now);
  }

  Leases leases_{{.holder = "a", .key = {1, 2}, .buckets_max = 16}};
};

TEST_F(LeasesTest, ColdBucketsAreAskedAlone) {
  for (int i = 0; i < 50; ++i) EXPECT_EQ(spend(kStart + i * 20ms).way, Way::alone) << i;
}

TEST_F(LeasesTest, HotBucketsWantWhatTheyUsedUpToTheTokens) {
  EXPECT_EQ(heat(kStart).want, kHotAsks);
  leases_.refused(7, 1, Time{});
  for (int i = 0; i < 100; ++i) {
    const auto answer = spend(kStart + 1ms);
    if (answer.want > 0) leases_.refused(7, answer.serial, Time{});
  }
  EXPECT_EQ(spend(kStart + 150ms).want, 64);  // the previous period was hot
  EXPECT_EQ(spend(kStart + 500ms).way, Way::alone);
}

TEST_F(LeasesTest, OneQuestionForALeaseAtATime) {
  const auto first = heat(kStart);
  EXPECT_GT(first.want, 0);
  EXPECT_EQ(spend(kStart).way, Way::gather);
  EXPECT_EQ(spend(kStart).want, 0);
  EXPECT_GT(spend(kStart + kLeaseSpent).want, 0);
}

TEST_F(LeasesTest, ServesUntilItIsUsedUp) {
  const auto asked = heat(kStart);
  ASSERT_TRUE(grant(asked, 3, kStart, kStart + 1ms));
  const auto first = spend(kStart + 2ms);
  EXPECT_EQ(first.way, Way::leased);
  // The bucket's state at the grant, plus what is left of the lease.
  EXPECT_EQ(first.decision.remaining, 702);
  EXPECT_EQ(first.decision.reset_after, 42ms);
  EXPECT_EQ(first.decision.burst, 744);
  EXPECT_TRUE(first.decision.allowed);
  EXPECT_EQ(spend(kStart + 2ms, 2).decision.remaining, 700);
  EXPECT_EQ(spend(kStart + 2ms).way, Way::gather);
  EXPECT_EQ(leases_.end(7, asked.serial), 0);
}

TEST_F(LeasesTest, ServesNoLongerThanItsLifeCountedFromTheQuestion) {
  const auto asked = heat(kStart);
  ASSERT_TRUE(grant(asked, 10, kStart, kStart + 90ms));
  EXPECT_EQ(spend(kStart + kLeaseSpent - 1ns).way, Way::leased);
  EXPECT_EQ(spend(kStart + kLeaseSpent).way, Way::gather);
}

TEST_F(LeasesTest, AGrantThatComesTooLateIsNotSpent) {
  const auto asked = heat(kStart);
  EXPECT_FALSE(grant(asked, 10, kStart, kStart + kLeaseSpent));
  EXPECT_NE(spend(kStart + kLeaseSpent).way, Way::leased);
}

TEST_F(LeasesTest, AGrantIsNotSpentOnceAnotherWasAskedFor) {
  const auto first = heat(kStart);
  const auto second = spend(kStart + kLeaseSpent);
  ASSERT_GT(second.want, 0);
  EXPECT_FALSE(grant(first, 10, kStart, kStart + 1ms));
  EXPECT_TRUE(grant(second, 10, kStart + kLeaseSpent, kStart + kLeaseSpent));
}

TEST_F(LeasesTest, ACostBeyondWhatIsLeftEndsTheLease) {
  const auto asked = heat(kStart);
  ASSERT_TRUE(grant(asked, 3, kStart, kStart + 1ms));
  const auto next = spend(kStart + 2ms, 4);
  EXPECT_EQ(next.way, Way::gather);
  EXPECT_GT(next.want, 0);
  EXPECT_EQ(next.unspent.tokens, 3);
  EXPECT_EQ(next.unspent.serial, asked.serial);
  EXPECT_NE(spend(kStart + 2ms).way, Way::leased);
  EXPECT_EQ(leases_.end(7, asked.serial), 0);  // returned once
}

TEST_F(LeasesTest, ACostBeyondALeaseIsAskedAlone) {
  const auto asked = heat(kStart);
  ASSERT_TRUE(grant(asked, 3, kStart, kStart + 1ms));
  EXPECT_EQ(spend(kStart + 2ms, 65).way, Way::alone);
  EXPECT_EQ(spend(kStart + 2ms).way, Way::leased);
  // So is a cost larger than the shared bucket.
  const Leases::Terms small{Limit::per_second(1000).with_burst(300).less(256), Lease{64, 4}};
  EXPECT_EQ(leases_.spend(7, small, 45, kStart).way, Way::alone);
}

TEST_F(LeasesTest, OtherNumbersEndTheLeaseAndTheQuestionForOne) {
  const auto asked = heat(kStart);
  ASSERT_TRUE(grant(asked, 10, kStart, kStart + 1ms));
  Leases::Terms other = kTerms;
  other.limit = Limit::per_second(500);
  EXPECT_NE(leases_.spend(7, other, 1, kStart + 2ms).way, Way::leased);
  EXPECT_NE(spend(kStart + 2ms).way, Way::leased);
  EXPECT_FALSE(grant(asked, 10, kStart, kStart + 3ms));
}

TEST_F(LeasesTest, WhatIsLeftIsToldOnce) {
  const auto asked = heat(kStart);
  ASSERT_TRUE(grant(asked, 10, kStart, kStart + 1ms));
  spend(kStart + 2ms, 4);
  EXPECT_EQ(leases_.end(7, asked.serial + 1), 0);
  EXPECT_EQ(leases_.end(7, asked.serial), 6);
  EXPECT_EQ(leases_.end(7, asked.serial), 0);
  EXPECT_NE(spend(kStart + 2ms).way, Way::leased);
}

TEST_F(LeasesTest, ABucketThatHasNoneToLeaseRests) {
  const auto asked = heat(kStart);
  leases_.refused(7, asked.serial, kStart + 30ms);
  EXPECT_EQ(spend(kStart + 29ms).way, Way::alone);
  EXPECT_GT(spend(kStart + 30ms).want, 0);
}

TEST_F(LeasesTest, TheTableKeepsWhatIsLeasedAndForgetsWhatIsCold) {
  const auto asked = heat(kStart);
  ASSERT_TRUE(grant(asked, 10, kStart, kStart));
  for (Leases::Bucket other = 100; other < 1000; ++other) leases_.spend(other, kTerms, 1, kStart + 1ms);
  EXPECT_EQ(spend(kStart + 2ms).way, Way::leased);
}

TEST_F(LeasesTest, AFullTableLeasesNoMore) {
  for (Leases::Bucket other = 100; other < 116; ++other) {
    Leases::Answer answer;
    for (Count i = 0; i < kHotAsks; ++i) answer = leases_.spend(other, kTerms, 1, kStart);
    ASSERT_TRUE(leases_.granted(other, answer.serial, 5, {}, kStart, kStart));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(spend(kStart).way, Way::alone);
  EXPECT_EQ(leases_.spend(100, kTerms, 1, kStart).way, Way::leased);
}

TEST(LeaseKey, LiesInTheSlotOfItsBucket) {
  const auto in_cluster = [](std::string_view key) { return static_cast<int>(slot_of(key)); };
  for (const std::string key : {"weir:b:orders:42", "weir:b:orders:a{x}b", "weir:b:orders:{", "weir:b:orders:a{b"}) {
    const auto leases = lease_key(key, 5, in_cluster);
    ASSERT_TRUE(leases) << key;
    EXPECT_EQ(slot_of(*leases), slot_of(key)) << key;
    EXPECT_TRUE(leases->starts_with("weir:l:")) << *leases;
  }
  EXPECT_EQ(lease_key("weir:b:orders:42", 5, in_cluster), "weir:l:{weir:b:orders:42}");
  EXPECT_EQ(lease_key("weir:{t}b:orders:42", 8, in_cluster), "weir:{t}l:orders:42");
  EXPECT_FALSE(lease_key("weir:b:orders:a}b", 5, in_cluster));
  EXPECT_EQ(lease_key("weir:b:orders:a}b", 5, [](std::string_view) { return 0; }), "weir:l:orders:a}b");
}

}  // namespace
}  // namespace weir::redis::leases_test
