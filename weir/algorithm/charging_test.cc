// The rules of charging, on buckets that are plain counts. The stores' own tests are in the conformance kit.
#include "weir/algorithm/charging.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::charging_test {
namespace {

// Buckets of five tokens that never refill, with a record of all operations.
class Counts {
 public:
  std::uint64_t hash(Key key) const { return std::hash<std::string_view>{}(key.text) * 2 + (key.kind == Kind::quota); }
  Decision spend(const ChargedBucket& bucket) {
    log += "spend " + name(bucket) + "; ";
    if (name(bucket) == lost) left(bucket) = 0;
    const bool allowed = bucket.cost <= left(bucket);
    if (allowed) left(bucket) -= bucket.cost;
    return decision(bucket, allowed);
  }
  Decision peek(const ChargedBucket& bucket) {
    log += "peek " + name(bucket) + "; ";
    return decision(bucket, bucket.cost <= left(bucket));
  }
  Decision look(const ChargedBucket& bucket) { return decision(bucket, bucket.cost <= left(bucket)); }
  Decision refund(const ChargedBucket& bucket) {
    left(bucket) += bucket.cost;
    return decision(bucket, true);
  }
  bool reset(const ChargedBucket& bucket) { return std::exchange(left(bucket), 5) != 5; }
  void undo(const ChargedBucket& bucket, const Decision&) {
    log += "undo " + name(bucket) + "; ";
    left(bucket) += bucket.cost;
  }

  Count& operator[](const std::string& name) { return tokens_.try_emplace(name, 5).first->second; }
  std::string log;
  std::string lost;  // another request empties this bucket between the peek and the spend

 private:
  static std::string name(const ChargedBucket& bucket) {
    return std::string(bucket.is_quota() ? "quota " : "rate ") + std::string(bucket.key().text);
  }
  Count& left(const ChargedBucket& bucket) { return (*this)[name(bucket)]; }
  Decision decision(const ChargedBucket& bucket, bool allowed) {
    return {allowed, 5, left(bucket), allowed ? Duration::zero() : Duration{1}, {}};
  }

  std::map<std::string, Count> tokens_;
};

Charge rate(std::string_view key, Count cost = 1, bool shadow = false) {
  Charge charge;
  charge.rate = RateCharge{key};
  charge.cost = cost;
  charge.shadow = shadow;
  return charge;
}

Charge both(std::string_view key, Count cost = 1, bool shadow = false) {
  Charge charge = rate(key, cost, shadow);
  charge.quota = QuotaCharge{key, {5, {}, {}}};
  return charge;
}

class ChargingTest : public testing::Test {
 protected:
  Verdict ask(const std::vector<Charge>& charges, Order order = Order::together, Mode mode = Mode::spend) {
    counts_.log.clear();
    return charge(counts_, charges, mode, order);
  }

  Counts counts_;
};

TEST_F(ChargingTest, OneBucketAloneIsSpentWithoutALook) {
  EXPECT_TRUE(ask({rate("a")}).allowed);
  EXPECT_EQ(counts_.log, "spend rate a; ");
}

TEST_F(ChargingTest, ARateAndItsQuotaAreLookedAtAndThenSpent) {
  const Verdict verdict = ask({both("a", 2)});
  ASSERT_EQ(verdict.all.size(), 1u);
  EXPECT_TRUE(verdict.all[0].has_both());
  EXPECT_TRUE(counts_.log.starts_with("peek rate a; peek quota a; spend ")) << counts_.log;
  EXPECT_EQ(counts_["rate a"], 3);
  EXPECT_EQ(counts_["quota a"], 3);
}

TEST_F(ChargingTest, ALostRaceUndoesTheOtherHalf) {
  for (const bool shadow : {false, true}) {
    for (const char* const lost : {"rate a", "quota a"}) {
      counts_ = {};
      counts_.lost = lost;
      const Verdict verdict = ask({both("a", 1, shadow)});
      EXPECT_FALSE(verdict.all[0].allowed());
      EXPECT_EQ(verdict.allowed, shadow);
      EXPECT_EQ(counts_["rate a"] + counts_["quota a"], 5) << "all of the one that was not lost";
    }
  }
}

TEST_F(ChargingTest, AShadowIsChargedWhateverTheOthersSay) {
  counts_["rate b"] = 0;
  const Verdict verdict = ask({both("s", 1, true), rate("b"), rate("c")});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.strictest, 1u);
  EXPECT_EQ(counts_["rate s"], 4);
  EXPECT_EQ(counts_["quota s"], 4);
  EXPECT_EQ(counts_["rate c"], 5);
}

TEST_F(ChargingTest, AShadowTakesFromBothHalvesOrNone) {
  counts_["quota s"] = 0;
  EXPECT_TRUE(ask({both("s", 1, true), rate("b")}).allowed);
  EXPECT_EQ(counts_["rate s"], 5);
  EXPECT_EQ(counts_["rate b"], 4);
}

TEST_F(ChargingTest, InOrderStopsBehindALimitWhoseQuotaDenies) {
  counts_["quota b"] = 0;
  const Verdict verdict = ask({rate("a"), both("b"), rate("c")}, Order::in_order);
  EXPECT_EQ(verdict.all.size(), 2u);
  EXPECT_EQ(verdict.all[1].stricter(), Kind::quota);
  EXPECT_EQ(counts_["rate a"], 4);
  EXPECT_EQ(counts_["rate b"], 5);
  EXPECT_EQ(counts_["rate c"], 5);
}

TEST_F(ChargingTest, ABucketThatAnEnforcingLimitNamesTooEnforces) {
  counts_["rate a"] = 0;
  EXPECT_FALSE(ask({rate("a", 1, true), rate("a")}).allowed);
  EXPECT_TRUE(ask({rate("a", 1, true)}).allowed);
}

TEST_F(ChargingTest, OtherModesVisitEachBucketOnce) {
  ask({both("a"), both("b", 2)});
  EXPECT_EQ(ask({both("b", 2), both("b")}, Order::together, Mode::refund).all[0].half(Kind::quota)->remaining, 6);
  EXPECT_EQ(ask({both("a"), both("b")}, Order::in_order, Mode::reset).forgotten, 4u);
  const Verdict peeked = ask({both("a", 6), rate("b")}, Order::in_order, Mode::peek);
  EXPECT_FALSE(peeked.allowed);
  EXPECT_EQ(peeked.all.size(), 2u) << "a peek takes nothing, so it tells of all";
}

TEST_F(ChargingTest, TakesAsManyChargesAndBucketsAsItsBounds) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i <= bounds::charges_max; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Charge> charges;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) charges.push_back(both(keys[i]));
  EXPECT_EQ(ask(charges).all.size(), bounds::charges_max);
  EXPECT_EQ(counts_["quota k15"], 4);
  charges.push_back(both(keys.back()));
  EXPECT_DEATH(ask(charges), "charges_max");
}

}  // namespace
}  // namespace weir::charging_test
