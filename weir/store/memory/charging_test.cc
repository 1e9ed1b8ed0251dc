#include "weir/store/memory/charging.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "weir/store/memory/memory_store.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwo = Limit::per_hour(2);
constexpr Limit kFive = Limit::per_hour(5);

Charge of(std::string_view key, const Limit& limit, Count cost = 1, bool shadow = false) {
  Charge charge;
  charge.key = {key};
  charge.limit_name = key;
  charge.limit = limit;
  charge.cost = cost;
  charge.shadow = shadow;
  return charge;
}

class Charging : public testing::Test {
 protected:
  Verdict ask(std::vector<Charge> charges, Order order = Order::together, Mode mode = Mode::spend) {
    return charge(*table_, charges, mode, order, clock_.now(), clock_);
  }
  Count left(std::string_view key, const Limit& limit) {
    return table_->peek(table_->hash(Key{key}), limit, 0, clock_.now().time).remaining;
  }

  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{3, 4}));
  ManualClock clock_{Time{10s}};
};

TEST_F(Charging, TogetherTakesFromAllOrNone) {
  EXPECT_TRUE(ask({of("ip", kTwo), of("all", kFive)}).allowed);
  EXPECT_TRUE(ask({of("ip", kTwo), of("all", kFive)}).allowed);
  for (int i = 0; i < 10; ++i) {
    const Verdict verdict = ask({of("ip", kTwo), of("all", kFive)});
    EXPECT_FALSE(verdict.allowed);
    EXPECT_EQ(verdict.strictest, 0u);
    EXPECT_EQ(verdict.all.size(), 2u);
    EXPECT_TRUE(verdict.all[1].allowed);
  }
  EXPECT_EQ(left("all", kFive), 3) << "denied requests that still burn quota";
}

TEST_F(Charging, InOrderStopsAtTheFirstDenialAndLeavesLaterBucketsUntouched) {
  // The sign-in gateway's own example: ip 2, global 5; the third answer names ip, and global still has 3.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask({of("ip", kTwo), of("global", kFive)}, Order::in_order).allowed);
  const Verdict third = ask({of("ip", kTwo), of("global", kFive)}, Order::in_order);
  EXPECT_FALSE(third.allowed);
  EXPECT_EQ(third.strictest, 0u);
  EXPECT_EQ(third.all.size(), 1u);
  EXPECT_EQ(left("global", kFive), 3);
}

TEST_F(Charging, InOrderKeepsWhatEarlierBucketsGave) {
  EXPECT_FALSE(ask({of("first", kFive), of("second", kTwo, 3)}, Order::in_order).allowed);
  EXPECT_EQ(left("first", kFive), 4);
}

TEST_F(Charging, TheStrictestDenialSpeaks) {
  ask({of("a", kTwo, 2), of("b", kFive, 5)});
  const Verdict verdict = ask({of("b", kFive), of("a", kTwo)});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.strictest, 1u) << "half an hour to wait beats twelve minutes";
  EXPECT_EQ(verdict.all[verdict.strictest].retry_after, 30min);
}

TEST_F(Charging, AShadowLimitIsChargedAndNeverDenies) {
  for (int i = 0; i < 3; ++i) {
    const Verdict verdict = ask({of("new", kTwo, 1, true), of("old", kFive)});
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.strictest, 1u);
    EXPECT_EQ(verdict.all[0].allowed, i < 2);
  }
  EXPECT_EQ(left("new", kTwo), 0);
  EXPECT_EQ(left("old", kFive), 2);
}

TEST_F(Charging, AShadowLimitIsChargedInItsOwnRightWhenAnotherDenies) {
  ask({of("old", kTwo, 2)});
  EXPECT_FALSE(ask({of("new", kFive, 1, true), of("old", kTwo)}).allowed);
  EXPECT_EQ(left("new", kFive), 4);
}

TEST_F(Charging, AShadowLimitAloneSpeaksButAllows) {
  ask({of("new", kTwo, 2, true)});
  const Verdict verdict = ask({of("new", kTwo, 1, true)});
  EXPECT_TRUE(verdict.allowed);
  EXPECT_FALSE(verdict.all[verdict.strictest].allowed);
}

TEST_F(Charging, TheSameBucketTwiceIsChargedOnceWithTheSum) {
  EXPECT_TRUE(ask({of("a", kFive, 2), of("b", kFive), of("a", kFive, 2)}).allowed);
  EXPECT_EQ(left("a", kFive), 1);
  EXPECT_FALSE(ask({of("a", kFive, 1), of("a", kFive, 1)}).allowed);
  EXPECT_EQ(left("a", kFive), 1);
  const Count most = std::numeric_limits<Count>::max();
  EXPECT_EQ(ask({of("c", kFive, most), of("c", kFive, most)}).all[0].retry_after, kNever);
}

TEST_F(Charging, PeekRefundAndResetTouchEveryBucket) {
  ask({of("a", kTwo, 2), of("b", kFive, 3)});
  EXPECT_FALSE(ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::peek).allowed);
  EXPECT_EQ(left("b", kFive), 2);
  const Verdict refunded = ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::refund);
  EXPECT_EQ(refunded.all[0].remaining, 1);
  EXPECT_EQ(refunded.all[1].remaining, 3);
  const Verdict reset = ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::reset);
  EXPECT_EQ(reset.all[0].remaining, 2);
  EXPECT_EQ(reset.all[1].remaining, 5);
  EXPECT_EQ(reset.forgotten, 2u);
  EXPECT_EQ(ask({of("a", kTwo), of("b", kFive)}, Order::together, Mode::reset).forgotten, 0u);
}

TEST_F(Charging, AShrunkLimitFreesASpentClientAfterItsNewInterval) {
  constexpr Limit kDaily = Limit::per_day(1000);
  constexpr Limit kFast = Limit::per_second(10);
  EXPECT_TRUE(ask({of("a", kDaily, 1000)}).allowed);
  EXPECT_EQ(ask({of("a", kFast)}).all[0], (Decision{false, 10, 0, 100ms, 1s}));
  clock_.advance(100ms - 1ns);
  EXPECT_FALSE(ask({of("a", kFast)}).allowed);
  clock_.advance(1ns);
  EXPECT_TRUE(ask({of("a", kFast)}).allowed);
  EXPECT_FALSE(ask({of("a", kFast)}).allowed);
}

TEST_F(Charging, AShrunkLimitFreesASpentClientAmongOthersToo) {
  constexpr Limit kFast = Limit::per_second(10);
  EXPECT_TRUE(ask({of("a", Limit::per_day(1000), 1000)}).allowed);
  EXPECT_FALSE(ask({of("a", kFast), of("b", kFive)}).allowed);
  clock_.advance(100ms);
  EXPECT_TRUE(ask({of("a", kFast), of("b", kFive)}).allowed);
}

TEST_F(Charging, AnOldReadingIsNotTakenForAShrunkLimit) {
  clock_.advance(10s);
  const Now fresh = clock_.now();
  ask({of("a", kFive, 5)});
  // A thread whose reading is ten seconds old is denied, and must not bring the TAT down by ten seconds.
  const std::array<Charge, 1> charges = {of("a", kFive)};
  EXPECT_FALSE(charge(*table_, charges, Mode::spend, Order::together, {fresh.time - 10s, fresh.wall}, clock_).allowed);
  EXPECT_EQ(ask({of("a", kFive)}, Order::together, Mode::peek).all[0].reset_after, 1h);
}

TEST_F(Charging, NothingToChargeIsAllowed) {
  EXPECT_TRUE(ask({}).allowed);
}

TEST_F(Charging, TakesAsManyChargesAsItsBound) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Charge> charges;
  for (const std::string& key : keys) charges.push_back(of(key, kTwo));
  EXPECT_EQ(ask(charges).all.size(), bounds::charges_max);
  charges.push_back(of("one past", kTwo));
  EXPECT_DEATH(ask(charges), "charges_max");
}

TEST_F(Charging, ALimitWithAQuotaIsHeldToBoth) {
  Charge day = of("a", kTwo);
  day.key.kind = Kind::quota;
  day.quota = {3, {Wall{}, Wall{24h}}, Wall{48h}};
  const std::vector<Charge> both = {of("a", Limit::per_second(2)), day};
  EXPECT_TRUE(ask(both).allowed);
  EXPECT_TRUE(ask(both).allowed);
  EXPECT_EQ(ask(both).strictest, 0u);
  clock_.advance(1s);
  EXPECT_TRUE(ask(both).allowed);
  const Verdict spent = ask(both);
  EXPECT_FALSE(spent.allowed);
  EXPECT_EQ(spent.strictest, 1u);
  EXPECT_EQ(spent.all[1].retry_after, 24h - 1s);
}

TEST_F(Charging, ALimitsBucketAndQuotaAreOneEvenInOrder) {
  Charge day = of("a", kTwo);
  day.key.kind = Kind::quota;
  day.quota = {1, {Wall{}, Wall{24h}}, Wall{48h}};
  const std::vector<Charge> charges = {of("first", kFive), of("a", kFive), day, of("last", kFive)};
  EXPECT_TRUE(ask(charges, Order::in_order).allowed);
  const Verdict second = ask(charges, Order::in_order);
  EXPECT_FALSE(second.allowed);
  EXPECT_EQ(second.strictest, 2u);
  EXPECT_EQ(second.all.size(), 3u);
  EXPECT_EQ(left("first", kFive), 3);
  EXPECT_EQ(left("a", kFive), 4) << "the quota denied, so the bucket is not charged";
  EXPECT_EQ(left("last", kFive), 4);
}

TEST_F(Charging, TheStoreAnswersEveryTicketBeforeItReturns) {
  struct Collect : Answers {
    std::vector<std::pair<Ticket, bool>> seen;
    void answer(Ticket ticket, const Result<Verdict>& verdict) override { seen.emplace_back(ticket, verdict->allowed); }
  } answers;
  const std::array<Charge, 1> charges = {of("a", kTwo)};
  const std::array<Question, 3> batch = {Question{7, charges}, Question{8, charges}, Question{9, charges}};
  MemoryStore(*table_, clock_).charge(batch, clock_.now(), answers);
  EXPECT_EQ(answers.seen, (std::vector<std::pair<Ticket, bool>>{{7, true}, {8, true}, {9, false}}));
}

}  // namespace
}  // namespace weir
