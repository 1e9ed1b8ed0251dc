// What every Store keeps. A store's own test makes a Subject of it and instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, testing::Values([] { return std::make_unique<MemorySubject>();
//   }));
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/store/store.h"
#include "weir/store/testing/subject.h"

namespace weir {

class StoreConformance : public testing::TestWithParam<MakeSubject> {
 protected:
  static Charge of(std::string_view key, const Limit& limit, Count cost = 1, bool shadow = false) {
    Charge charge;
    charge.limit_name = key;
    charge.rate = RateCharge{key, limit};
    charge.cost = cost;
    charge.shadow = shadow;
    return charge;
  }
  // Of `size` in the hour that holds now.
  Charge quota(std::string_view key, Count size, Count cost = 1) const {
    Charge charge = both(key, Limit::per_second(1), size, cost);
    charge.rate.reset();
    return charge;
  }
  // A limit with a rate and with such a quota.
  Charge both(std::string_view key, const Limit& limit, Count size, Count cost = 1, bool shadow = false) const {
    Charge charge = of(key, limit, cost, shadow);
    const Wall start = std::chrono::floor<std::chrono::hours>(subject_->wall());
    const Window hour{start, start + std::chrono::hours{1}};
    charge.quota = QuotaCharge{key, {size, hour, start + std::chrono::hours{2}}};
    return charge;
  }
  Verdict ask(std::vector<Charge> charges, Order order = Order::together, Mode mode = Mode::spend) {
    const std::vector<Question> batch = {{7, charges, mode, order}};
    const auto answers = subject_->ask(batch);
    EXPECT_TRUE(answers.at(0)) << (answers.at(0) ? "" : answers.at(0).error().detail);
    return answers.at(0) ? *answers.at(0) : Verdict{};
  }
  Count left(std::string_view key, const Limit& limit) {
    return ask({of(key, limit, 0)}, Order::together, Mode::peek).all[0].strictest().remaining;
  }

  std::unique_ptr<Subject> subject_ = GetParam()();
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

namespace conformance {
using namespace std::chrono_literals;
inline constexpr Limit kTwo = Limit::per_hour(2);
inline constexpr Limit kFive = Limit::per_hour(5);
}  // namespace conformance

TEST_P(StoreConformance, TheWorkedExampleHoldsExactly) {
  using namespace conformance;
  constexpr Limit kTwenty = Limit::per_second(20);
  EXPECT_EQ(ask({of("a", kTwenty)}).all[0], (Decision{true, 20, 19, 0ns, 50ms}));
  subject_->advance(5ms);
  EXPECT_EQ(ask({of("a", kTwenty)}).all[0], (Decision{true, 20, 18, 0ns, 95ms}));
  for (int i = 0; i < 18; ++i) EXPECT_TRUE(ask({of("a", kTwenty)}).allowed);
  subject_->advance(44ms);
  EXPECT_EQ(ask({of("a", kTwenty)}).all[0], (Decision{false, 20, 0, 1ms, 951ms}));
  subject_->advance(1ms);
  EXPECT_TRUE(ask({of("a", kTwenty)}).allowed);
  EXPECT_FALSE(ask({of("a", kTwenty)}).allowed);
}

TEST_P(StoreConformance, TogetherTakesFromAllOrNone) {
  using namespace conformance;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask({of("ip", kTwo), of("all", kFive)}).allowed);
  for (int i = 0; i < 3; ++i) {
    const Verdict verdict = ask({of("ip", kTwo), of("all", kFive)});
    EXPECT_FALSE(verdict.allowed);
    EXPECT_EQ(verdict.strictest, 0u);
    EXPECT_EQ(verdict.all.size(), 2u);
    EXPECT_TRUE(verdict.all[1].allowed());
    EXPECT_EQ(verdict.all[1].strictest().remaining, 3);
  }
  EXPECT_EQ(left("all", kFive), 3) << "denied requests that still burn quota";
}

TEST_P(StoreConformance, InOrderStopsAtTheFirstDenialAndLeavesLaterBucketsUntouched) {
  using namespace conformance;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask({of("ip", kTwo), of("global", kFive)}, Order::in_order).allowed);
  // More than once, because a store may remember its denials.
  for (int i = 0; i < 3; ++i) {
    const Verdict third = ask({of("ip", kTwo), of("global", kFive)}, Order::in_order);
    EXPECT_FALSE(third.allowed);
    EXPECT_EQ(third.strictest, 0u);
    EXPECT_EQ(third.all.size(), 1u);
  }
  EXPECT_EQ(left("global", kFive), 3);
}

TEST_P(StoreConformance, InOrderKeepsWhatEarlierBucketsGave) {
  using namespace conformance;
  EXPECT_FALSE(ask({of("first", kFive), of("second", kTwo, 3), of("third", kFive)}, Order::in_order).allowed);
  EXPECT_EQ(left("first", kFive), 4);
  EXPECT_EQ(left("third", kFive), 5);
}

TEST_P(StoreConformance, TheStrictestDenialSpeaks) {
  using namespace conformance;
  ask({of("a", kTwo, 2), of("b", kFive, 5)});
  const Verdict verdict = ask({of("b", kFive), of("a", kTwo)});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.strictest, 1u);
  EXPECT_EQ(verdict.all[1].strictest().retry_after, 30min);
}

TEST_P(StoreConformance, AShadowIsChargedInItsOwnRightAndNeverDenies) {
  using namespace conformance;
  for (int i = 0; i < 3; ++i) {
    const Verdict verdict = ask({of("new", kTwo, 1, true), of("old", kFive)});
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.strictest, 1u);
    EXPECT_EQ(verdict.all[0].allowed(), i < 2);
  }
  ask({of("old", kFive, 2)});
  EXPECT_FALSE(ask({of("other", kFive, 1, true), of("old", kFive)}).allowed);
  EXPECT_EQ(left("other", kFive), 4);
}

TEST_P(StoreConformance, AShadowAloneSpeaksButAllows) {
  using namespace conformance;
  ask({of("new", kTwo, 2, true)});
  const Verdict verdict = ask({of("new", kTwo, 1, true)});
  EXPECT_TRUE(verdict.allowed);
  EXPECT_FALSE(verdict.all[verdict.strictest].allowed());
}

TEST_P(StoreConformance, TheSameBucketTwiceIsChargedOnceWithTheSum) {
  using namespace conformance;
  EXPECT_TRUE(ask({of("a", kFive, 2), of("b", kFive), of("a", kFive, 2)}).allowed);
  EXPECT_EQ(left("a", kFive), 1);
  EXPECT_FALSE(ask({of("a", kFive), of("a", kFive)}).allowed);
  EXPECT_EQ(left("a", kFive), 1);
  const Count most = std::numeric_limits<Count>::max();
  EXPECT_EQ(ask({of("c", kFive, most), of("c", kFive, most)}).all[0].strictest().retry_after, kNever);
}

TEST_P(StoreConformance, ACostBeyondTheBurstNeverPassesAndTakesNothing) {
  using namespace conformance;
  const Verdict verdict = ask({of("a", kFive, 6)});
  EXPECT_EQ(verdict.all[0], (Decision{false, 5, 5, kNever, 0ns}));
  EXPECT_EQ(left("a", kFive), 5);
}

TEST_P(StoreConformance, PeekRefundAndResetTouchEveryBucket) {
  using namespace conformance;
  ask({of("a", kTwo, 2), of("b", kFive, 3)});
  EXPECT_FALSE(ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::peek).allowed);
  EXPECT_EQ(left("b", kFive), 2);
  const Verdict refunded = ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::refund);
  EXPECT_EQ(refunded.all[0].strictest().remaining, 1);
  EXPECT_EQ(refunded.all[1].strictest().remaining, 3);
  const Verdict reset = ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::reset);
  EXPECT_EQ(reset.all[0].strictest().remaining, 2);
  EXPECT_EQ(reset.all[1].strictest().remaining, 5);
  EXPECT_EQ(reset.forgotten, 2u);
  EXPECT_EQ(ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::reset).forgotten, 0u);
  EXPECT_EQ(ask({of("a", kTwo, 100)}, Order::together, Mode::refund).all[0].strictest().remaining, 2)
      << "never beyond full";
}

TEST_P(StoreConformance, ADenialChangesNothing) {
  using namespace conformance;
  ask({of("a", kTwo, 2)});
  subject_->advance(10min);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask({of("a", kTwo)}).all[0].strictest().retry_after, 20min);
  subject_->advance(20min);
  EXPECT_TRUE(ask({of("a", kTwo)}).allowed);
}

TEST_P(StoreConformance, AShrunkLimitFreesASpentClientAfterItsNewInterval) {
  using namespace conformance;
  constexpr Limit kFast = Limit::per_second(10);
  for (const std::string_view other : {"", "b"}) {
    ask({of("a", kFast)}, Order::together, Mode::reset);
    EXPECT_TRUE(ask({of("a", Limit::per_day(1000), 1000)}).allowed);
    std::vector<Charge> charges = {of("a", kFast)};
    if (!other.empty()) charges.push_back(of(other, kFive));
    EXPECT_EQ(ask(charges).all[0], (Decision{false, 10, 0, 100ms, 1s}));
    subject_->advance(100ms - 1us);
    EXPECT_FALSE(ask(charges).allowed);
    subject_->advance(1us);
    EXPECT_TRUE(ask(charges).allowed);
  }
}

TEST_P(StoreConformance, WaitingTheRetryAfterOfAnyAnswerIsEnoughAfterALimitIsRelaxed) {
  using namespace conformance;
  constexpr Limit kFast = Limit::per_second(10);
  const auto empty = [&] {
    ask({of("a", kFast)}, Order::together, Mode::reset);
    EXPECT_TRUE(ask({of("a", Limit::per_day(1000), 1000)}).allowed);
  };
  empty();
  EXPECT_EQ(ask({of("a", kFast)}, Order::together, Mode::peek).all[0], (Decision{false, 10, 0, 100ms, 1s}));
  subject_->advance(40ms);
  EXPECT_EQ(ask({of("a", kFast)}, Order::together, Mode::peek).all[0], (Decision{false, 10, 0, 60ms, 960ms}));
  subject_->advance(60ms);
  EXPECT_TRUE(ask({of("a", kFast)}).allowed);
  EXPECT_FALSE(ask({of("a", kFast)}).allowed);
  // A cost that can never pass has a reset_after to keep.
  empty();
  EXPECT_EQ(ask({of("a", kFast, 11)}).all[0], (Decision{false, 10, 0, kNever, 1s}));
  subject_->advance(1s);
  EXPECT_EQ(left("a", kFast), 10);
}

TEST_P(StoreConformance, ARefundAfterALimitIsRelaxedAddsToAnEmptyBucket) {
  using namespace conformance;
  EXPECT_TRUE(ask({of("a", Limit::per_day(1000), 1000)}).allowed);
  constexpr Limit kFast = Limit::per_second(10);
  EXPECT_EQ(ask({of("a", kFast, 4)}, Order::together, Mode::refund).all[0].strictest().remaining, 4);
  EXPECT_TRUE(ask({of("a", kFast, 4)}).allowed);
  EXPECT_FALSE(ask({of("a", kFast)}).allowed);
  EXPECT_EQ(ask({of("a", kFast, std::numeric_limits<Count>::max())}, Order::together, Mode::refund)
                .all[0]
                .strictest()
                .remaining,
            10);
}

TEST_P(StoreConformance, ALookAnswersAsAPeekAndWritesNothing) {
  using namespace conformance;
  constexpr Limit kDaily = Limit::per_day(1000);
  EXPECT_TRUE(ask({of("a", kDaily, 999)}).allowed);
  EXPECT_EQ(ask({of("a", Limit::per_second(10))}, Order::together, Mode::look).all[0],
            (Decision{false, 10, 0, 100ms, 1s}));
  EXPECT_EQ(left("a", kDaily), 1);
}

TEST_P(StoreConformance, ALimitWithARateAndAQuotaIsOneDecisionInEitherOrder) {
  using namespace conformance;
  for (const Order order : {Order::together, Order::in_order}) {
    for (const std::string_view key : {"a", "first", "last"}) ask({both(key, kFive, 1)}, Order::together, Mode::reset);
    const std::vector<Charge> charges = {of("first", kFive), both("a", kFive, 1), of("last", kFive)};
    EXPECT_TRUE(ask(charges, order).allowed);
    const Verdict second = ask(charges, order);
    EXPECT_FALSE(second.allowed);
    EXPECT_EQ(second.strictest, 1u);
    EXPECT_EQ(second.all.size(), order == Order::together ? 3u : 2u);
    EXPECT_EQ(second.all[1].stricter(), Kind::quota);
    EXPECT_EQ(second.speaker().burst, 1);
    ASSERT_TRUE(second.all[1].has_both());
    EXPECT_TRUE(second.all[1].half(Kind::bucket)->allowed);
    EXPECT_EQ(second.all[1].half(Kind::bucket)->remaining, 4) << "the quota denied, so the rate is not charged";
    EXPECT_EQ(left("first", kFive), order == Order::together ? 4 : 3);
    EXPECT_EQ(left("a", kFive), 4);
    EXPECT_EQ(left("last", kFive), 4);
  }
}

TEST_P(StoreConformance, TheStricterHalfSpeaksForItsLimit) {
  using namespace conformance;
  const Verdict rate = ask({both("a", kTwo, 5)});
  EXPECT_EQ(rate.all[0].stricter(), Kind::bucket);
  EXPECT_EQ(rate.speaker().remaining, 1);
  EXPECT_EQ(rate.all[0].half(Kind::quota)->remaining, 4);
  const Verdict quota = ask({both("b", kFive, 3)});
  EXPECT_EQ(quota.all[0].stricter(), Kind::quota);
  EXPECT_EQ(quota.speaker().remaining, 2);
  EXPECT_EQ(ask({both("a", kTwo, 5)}, Order::together, Mode::peek).all[0].half(Kind::quota)->remaining, 4);
  EXPECT_EQ(ask({both("a", kTwo, 5)}, Order::together, Mode::refund).all[0].half(Kind::quota)->remaining, 5);
  EXPECT_EQ(ask({both("b", kFive, 3)}, Order::together, Mode::reset).forgotten, 2u);
}

TEST_P(StoreConformance, AShadowsRateAndQuotaAreTakenTogetherOrNotAtAll) {
  using namespace conformance;
  EXPECT_TRUE(ask({both("a", kFive, 1, 1, true), of("b", kFive)}).all[0].allowed());
  for (const Order order : {Order::together, Order::in_order}) {
    const Verdict verdict = ask({both("a", kFive, 1, 1, true), of("b", kFive)}, order);
    EXPECT_TRUE(verdict.allowed);
    EXPECT_FALSE(verdict.all[0].allowed());
    EXPECT_EQ(left("a", kFive), 4) << "its quota denied";
  }
  EXPECT_EQ(left("b", kFive), 2);
}

// As a limit's tiers do: each has a bucket of its own, and the quota is one.
TEST_P(StoreConformance, LimitsMayShareAQuotaAndNotTheRate) {
  using namespace conformance;
  Charge other = both("a", kFive, 3);
  other.rate->key = "a~pro";
  EXPECT_TRUE(ask({both("a", kFive, 3), other}).allowed);
  EXPECT_EQ(ask({quota("a", 3, 0)}, Order::together, Mode::peek).all[0].strictest().remaining, 1);
  EXPECT_FALSE(ask({both("a", kFive, 3), other}).allowed) << "the quota is charged once with the sum";
  EXPECT_EQ(left("a", kFive), 4);
  EXPECT_EQ(left("a~pro", kFive), 4);
}

TEST_P(StoreConformance, AQuotaBeginsAnewWithItsWindow) {
  using namespace conformance;
  EXPECT_EQ(ask({quota("a", 3, 2)}).all[0].strictest().remaining, 1);
  EXPECT_FALSE(ask({quota("a", 3, 2)}).allowed);
  EXPECT_EQ(ask({quota("a", 3, 1)}, Order::together, Mode::refund).all[0].strictest().remaining, 2);
  EXPECT_EQ(ask({quota("a", 3)}, Order::together, Mode::reset).forgotten, 1u);
  EXPECT_TRUE(ask({quota("a", 3, 3)}).allowed);
  subject_->advance(1h);
  EXPECT_EQ(ask({quota("a", 3)}).all[0].strictest().remaining, 2);
}

TEST_P(StoreConformance, AnswersEveryTicketOfABatchOnce) {
  using namespace conformance;
  const std::vector<Charge> charges = {of("a", kTwo)};
  const std::vector<Question> batch(100, Question{7, charges});
  const auto answers = subject_->ask(batch);
  ASSERT_EQ(answers.size(), 100u);
  int allowed = 0;
  for (const auto& answer : answers) allowed += answer && answer->allowed ? 1 : 0;
  EXPECT_EQ(allowed, 2);
}

TEST_P(StoreConformance, NothingToChargeIsAllowed) {
  EXPECT_TRUE(ask({}).allowed);
}

TEST_P(StoreConformance, TakesAsManyChargesAndBucketsAsTheBounds) {
  using namespace conformance;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Charge> charges;
  for (const std::string& key : keys) charges.push_back(both(key, kTwo, 5));
  EXPECT_EQ((Question{7, charges}.buckets()), bounds::charged_buckets_max);
  const Verdict verdict = ask(charges);
  ASSERT_EQ(verdict.all.size(), bounds::charges_max);
  EXPECT_EQ(verdict.all[15].half(Kind::bucket)->remaining, 1);
  EXPECT_EQ(verdict.all[15].half(Kind::quota)->remaining, 4);
}

TEST_P(StoreConformance, AWindowOfAFixedLengthBeginsAnewOnItsSecond) {
  using namespace conformance;
  const auto every = [&](Duration length, Count cost) {
    Charge charge = quota("a", 3, cost);
    const Wall start{subject_->wall().time_since_epoch() / length * length};
    charge.quota->quota = {3, {start, start + length}, start + 2 * length, length};
    return charge;
  };
  for (const Duration length : {Duration{7s}, Duration{90s}, Duration{120s}}) {
    EXPECT_TRUE(ask({every(length, 2)}).allowed);
    const Verdict denied = ask({every(length, 2)});
    EXPECT_FALSE(denied.allowed);
    const Duration wait = denied.all[0].strictest().retry_after;
    EXPECT_LE(wait, length);
    EXPECT_EQ((subject_->wall() + wait).time_since_epoch() % length, 0ns) << "the end of the window";
    EXPECT_TRUE(ask({every(length, 1), of("b", kFive, 0)}).allowed) << "a denial took nothing";
    EXPECT_EQ(ask({every(length, 1)}, Order::together, Mode::refund).all[0].strictest().remaining, 1);
    EXPECT_EQ(ask({every(length, 1)}, Order::together, Mode::reset).forgotten, 1u);
    EXPECT_EQ(ask({every(length, 3)}).all[0].strictest().remaining, 0);
    subject_->advance(std::max(every(length, 1).quota->quota.window.end - subject_->wall(), Duration{1ms}));
    EXPECT_EQ(ask({every(length, 3)}).all[0].strictest().remaining, 0) << "the next window";
    subject_->advance(2h);
  }
}

TEST_P(StoreConformance, AlternativesDenyOnlyIfAllOfThemDo) {
  using namespace conformance;
  const auto either = [](Charge charge) {
    charge.alternative = true;
    return charge;
  };
  const std::vector<Charge> asked = {either(of("small", kTwo)), of("enforced", Limit::per_hour(6)),
                                     either(of("large", kFive))};
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask(asked).allowed);
  for (int i = 0; i < 3; ++i) {
    const Verdict verdict = ask(asked);
    EXPECT_TRUE(verdict.allowed);
    EXPECT_FALSE(verdict.all[0].allowed());
    EXPECT_TRUE(verdict.all[2].allowed());
  }
  const Verdict out = ask(asked);
  EXPECT_FALSE(out.allowed) << "both alternatives are out";
  EXPECT_TRUE(out.all[1].allowed());
  EXPECT_EQ(left("enforced", Limit::per_hour(6)), 1) << "nothing is taken then";

  EXPECT_TRUE(ask({either(of("fresh", kFive)), of("full", kTwo, 2)}).allowed);
  EXPECT_FALSE(ask({either(of("fresh", kFive)), of("full", kTwo)}).allowed);
  EXPECT_EQ(left("fresh", kFive), 4) << "an enforced denial takes nothing of them";
}

TEST_P(StoreConformance, AChargeThatPeeksDeniesForItsCostAndTakesNothing) {
  using namespace conformance;
  Charge peek = of("a", kTwo);
  peek.peeks = true;
  EXPECT_EQ(ask({peek}).all[0].strictest().remaining, 2);
  EXPECT_TRUE(ask({peek, of("b", kFive)}).allowed);
  EXPECT_EQ(left("a", kTwo), 2);
  ask({of("a", kTwo, 2)});
  EXPECT_FALSE(ask({peek}).allowed);
  EXPECT_FALSE(ask({peek, of("b", kFive)}).allowed);
  EXPECT_EQ(left("b", kFive), 4);
}

}  // namespace weir
