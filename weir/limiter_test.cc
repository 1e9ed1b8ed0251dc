#include "weir/limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "weir/algorithm/gcra.h"
#include "weir/base/bounds.h"

namespace weir::limiter_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr Limit kTen = Limit::per_second(10);
constexpr Limit kThree = Limit::per_second(3);

// Most of a test's time stands still.
struct Fixture : testing::Test {
  ManualClock clock{Time{100s}, Wall{1'700'000'000s}};

  int spends_until_denied(Limiter& limiter, std::string_view key) {
    int allowed = 0;
    while (limiter.spend(key).allowed) ++allowed;
    return allowed;
  }
};
using LimiterTest = Fixture;

TEST_F(LimiterTest, HoldsTheWorkedExampleToTheNanosecond) {
  ManualClock from_zero;
  Limiter limiter{Limit::per_second(20), {.clock = &from_zero}};
  EXPECT_EQ(limiter.spend("client"), (Decision{true, 20, 19, 0ns, 50ms}));
  from_zero.advance(5ms);
  EXPECT_EQ(limiter.spend("client"), (Decision{true, 20, 18, 0ns, 95ms}));
  for (int i = 0; i < 18; ++i) {
    EXPECT_TRUE(limiter.spend("client").allowed) << i;
    if (i < 17) from_zero.advance(i == 16 ? 44ms - 16 * 2ms : 2ms);
  }
  EXPECT_EQ(from_zero.now().time, Time{49ms});
  EXPECT_EQ(limiter.spend("client"), (Decision{false, 20, 0, 1ms, 951ms}));
  from_zero.advance(1ms - 1ns);
  EXPECT_EQ(limiter.spend("client").retry_after, 1ns);
  from_zero.advance(1ns);
  EXPECT_TRUE(limiter.spend("client").allowed);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(limiter.spend("client").retry_after, 50ms);
    from_zero.advance(50ms);
    EXPECT_TRUE(limiter.spend("client").allowed);
  }
}

TEST_F(LimiterTest, NeedsNothingButALimit) {
  Limiter logins{Limit::per_minute(60).with_burst(10)};
  EXPECT_EQ(spends_until_denied(logins, "alice"), 10);
  EXPECT_TRUE(logins.spend("bob").allowed);
}

TEST_F(LimiterTest, TakesALimitThatComesAsData) {
  const Result<Limit> limit = Limit::make(3, 1h, 2);
  ASSERT_TRUE(limit);
  Result<Limiter> limiter = Limiter::make(*limit, {.clock = &clock});
  ASSERT_TRUE(limiter);
  EXPECT_EQ(spends_until_denied(*limiter, "a"), 2);
}

TEST_F(LimiterTest, DecidesLikeTheAlgorithmAlone) {
  EXPECT_TRUE(rc::check([] {
    ManualClock time{Time{1s}};
    Limiter limiter{kTen, {.max_buckets = 1000, .clock = &time}};
    std::map<std::string, Time> tats;
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      const std::string key(1, *rc::gen::element('a', 'b', 'c'));
      const Count cost = *rc::gen::inRange<Count>(0, 13);
      const Time now = time.now().time;
      Step step{};
      switch (*rc::gen::inRange(0, 3)) {
        case 0:
          step = gcra::spend(kTen, tats[key], cost, now);
          RC_ASSERT(limiter.spend(key, cost) == step.decision);
          break;
        case 1:
          step = gcra::refund(kTen, tats[key], cost, now);
          RC_ASSERT(limiter.refund(key, cost) == step.decision);
          break;
        default:
          step.tat = tats[key];
          RC_ASSERT(limiter.peek(key, cost) == gcra::peek(kTen, tats[key], cost, now));
      }
      tats[key] = step.tat;
      time.advance(Duration{*rc::gen::inRange<std::int64_t>(0, 300'000'000)});
    }
  }));
}

TEST_F(LimiterTest, RefusesACostThatNoBucketHolds) {
  Limiter limiter{kTen, {.clock = &clock}};
  EXPECT_EQ(limiter.spend("a", 10).remaining, 0);
  EXPECT_EQ(limiter.spend("b", 11), (Decision{false, 10, 10, kNever, 0ns}));
  EXPECT_EQ(limiter.peek("b", 11).retry_after, kNever);
}

TEST_F(LimiterTest, RefusesANegativeCostAndGivesNothingForIt) {
  Limiter limiter{kTen, {.clock = &clock}};
  limiter.spend("a", 4);
  for (const Count cost : {Count{-1}, std::numeric_limits<Count>::min()}) {
    EXPECT_EQ(limiter.spend("a", cost).retry_after, kNever);
    EXPECT_FALSE(limiter.peek("a", cost).allowed);
    EXPECT_EQ(limiter.refund("a", cost).remaining, 6);
  }
  EXPECT_EQ(limiter.peek("a").remaining, 6);
}

TEST_F(LimiterTest, TakesNothingForACostOfZero) {
  Limiter limiter{kThree, {.clock = &clock}};
  spends_until_denied(limiter, "a");
  EXPECT_TRUE(limiter.spend("a", 0).allowed);
  EXPECT_TRUE(limiter.spend("fresh", 0).allowed);
  EXPECT_EQ(limiter.stats().buckets, 1);
}

TEST_F(LimiterTest, PeeksWithoutWriting) {
  Limiter limiter{kThree, {.clock = &clock}};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limiter.peek("a"), (Decision{true, 3, 3, 0ns, 0ns}));
  EXPECT_EQ(limiter.stats().buckets, 0);
  limiter.spend("a", 2);
  const Decision before = limiter.peek("a", 2);
  EXPECT_FALSE(before.allowed);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limiter.peek("a", 2), before);
  EXPECT_TRUE(limiter.spend("a").allowed);
}

TEST_F(LimiterTest, RefundsNeverBeyondFull) {
  Limiter limiter{kThree, {.clock = &clock}};
  limiter.spend("a", 2);
  EXPECT_EQ(limiter.refund("a", 1).remaining, 2);
  EXPECT_EQ(limiter.refund("a", 1'000'000).remaining, 3);
  EXPECT_EQ(limiter.refund("stranger", 1).remaining, 3);
  EXPECT_EQ(spends_until_denied(limiter, "a"), 3);
  EXPECT_EQ(spends_until_denied(limiter, "stranger"), 3);
}

TEST_F(LimiterTest, ResetsABucketToFull) {
  Limiter limiter{kThree, {.clock = &clock}};
  EXPECT_FALSE(limiter.reset("a"));
  spends_until_denied(limiter, "a");
  EXPECT_TRUE(limiter.reset("a"));
  EXPECT_FALSE(limiter.reset("a"));
  EXPECT_EQ(spends_until_denied(limiter, "a"), 3);
}

TEST_F(LimiterTest, HeedsNeitherStepOfTheWallClock) {
  Limiter limiter{kThree, {.clock = &clock}};
  spends_until_denied(limiter, "a");
  const Decision before = limiter.peek("a");
  for (const auto wall : {Wall{0s}, Wall{4'000'000'000s}}) {
    clock.set(clock.now().time, wall);
    EXPECT_EQ(limiter.peek("a"), before);
    EXPECT_FALSE(limiter.spend("a").allowed);
  }
  clock.set(clock.now().time + 334ms, Wall{0s});
  EXPECT_TRUE(limiter.spend("a").allowed);
}

TEST_F(LimiterTest, LosesAtMostOneWindowToAClockThatIsSetBack) {
  Limiter limiter{kThree, {.clock = &clock}};
  spends_until_denied(limiter, "a");
  clock.set(Time{50s}, Wall{});
  EXPECT_LE(limiter.spend("a").retry_after, 334ms);
}

TEST_F(LimiterTest, TellsApartKeysOfAnyBytesAndLength) {
  Limiter limiter{kThree, {.clock = &clock}};
  const std::string long_key(1'000'000, 'x');
  const std::vector<std::string> keys{"", std::string(1, '\0'), std::string(2, '\0'), "a", long_key, long_key + "y"};
  for (const std::string& key : keys) EXPECT_EQ(spends_until_denied(limiter, key), 3) << key.size();
  EXPECT_EQ(limiter.stats().buckets, keys.size());
}

TEST_F(LimiterTest, AnswersABatchLikeSingles) {
  EXPECT_TRUE(rc::check([] {
    ManualClock time{Time{1s}};
    const Buckets shared({.max_buckets = 1000, .clock = &time});
    const bool named = *rc::gen::arbitrary<bool>();
    Limiter one = named ? Limiter{shared, "one", kThree} : Limiter{kThree, {.max_buckets = 1000, .clock = &time}};
    Limiter many = named ? Limiter{shared, "many", kThree} : Limiter{kThree, {.max_buckets = 1000, .clock = &time}};
    for (Limiter* limiter : {&one, &many}) RC_ASSERT(bool(limiter->set_override("k3", Limit::per_second(1))));
    const Count cost = *rc::gen::inRange<Count>(-1, 5);
    const auto size = *rc::gen::inRange<std::size_t>(0, 50);
    std::vector<std::string> texts(size);
    for (std::string& text : texts) text = "k" + std::to_string(*rc::gen::inRange(0, 12));
    const std::vector<std::string_view> keys(texts.begin(), texts.end());
    std::vector<Decision> decisions(size);
    many.spend_batch(keys, decisions, cost);
    for (std::size_t i = 0; i < size; ++i) RC_ASSERT(decisions[i] == one.spend(keys[i], cost));
  }));
}

TEST_F(LimiterTest, LeavesTheRestOfALongerSpanAlone) {
  Limiter limiter{kThree, {.clock = &clock}};
  const std::array<std::string_view, 2> keys{"a", "b"};
  std::array<Decision, 3> decisions{};
  limiter.spend_batch(keys, decisions);
  EXPECT_EQ(decisions[1].remaining, 2);
  EXPECT_EQ(decisions[2], Decision{});
}

TEST_F(LimiterTest, GivesAnOverriddenKeyItsOwnNumbers) {
  Limiter limiter{kThree, {.clock = &clock}};
  ASSERT_TRUE(limiter.set_override("acme", kTen));
  EXPECT_EQ(limiter.limit_of("acme"), kTen);
  EXPECT_EQ(limiter.limit_of("other"), kThree);
  EXPECT_EQ(spends_until_denied(limiter, "acme"), 10);
  EXPECT_EQ(spends_until_denied(limiter, "other"), 3);
}

TEST_F(LimiterTest, KeepsWhatWasSpentWhenTheNumbersChange) {
  Limiter limiter{kTen, {.clock = &clock}};
  EXPECT_EQ(limiter.spend("a", 5).reset_after, 500ms);
  ASSERT_TRUE(limiter.set_override("a", Limit::per_second(100).with_burst(60)));
  EXPECT_EQ(limiter.peek("a").remaining, 10);  // 500 ms of 600 are spent
  ASSERT_TRUE(limiter.set_override("a", Limit::per_second(1'000).with_burst(100)));
  EXPECT_EQ(limiter.peek("a", 100).retry_after, 100ms);  // at worst empty when they changed, and that is kept
  EXPECT_TRUE(limiter.remove_override("a"));
  EXPECT_FALSE(limiter.remove_override("a"));
  EXPECT_EQ(limiter.peek("a").remaining, 9);
}

TEST_F(LimiterTest, OverridesAKeyOfOneLimitAndNotOfAnother) {
  const Buckets buckets({.clock = &clock});
  Limiter first{buckets, "first", kThree};
  Limiter second{buckets, "second", kThree};
  ASSERT_TRUE(first.set_override("a", kTen));
  EXPECT_EQ(spends_until_denied(first, "a"), 10);
  EXPECT_EQ(spends_until_denied(second, "a"), 3);
}

TEST_F(LimiterTest, NeverMergesTwoPairsOfNameAndKey) {
  const Buckets buckets({.clock = &clock});
  std::vector<std::pair<std::string, std::string>> pairs{{"a:b", "c"},  {"a", "b:c"},  {"a\\", "b:c"}, {"a\\:b", "c"},
                                                         {"a:b:c", ""}, {"", "a:b:c"}, {":", "b"},     {"", ":b"}};
  for (const auto& [name, key] : pairs) {
    Limiter limiter{buckets, name, kThree};
    EXPECT_EQ(spends_until_denied(limiter, key), 3) << name << " and " << key;
  }
  EXPECT_EQ(buckets.stats().buckets, pairs.size());
}

TEST_F(LimiterTest, NeverMergesAnyTwoPairsOfNameAndKey) {
  EXPECT_TRUE(rc::check([] {
    ManualClock time{Time{1s}};
    const Buckets buckets({.max_buckets = 1000, .clock = &time});
    const auto text = rc::gen::container<std::string>(rc::gen::element(':', '\\', 'a'));
    std::map<std::pair<std::string, std::string>, int> pairs;
    for (int i = 0; i < 20; ++i) ++pairs[{*text, *text}];
    for (const auto& [pair, times] : pairs) RC_ASSERT(Limiter(buckets, pair.first, kThree).spend(pair.second).allowed);
    RC_ASSERT(buckets.stats().buckets == pairs.size());
  }));
}

TEST_F(LimiterTest, SharesTheBucketsOfOneName) {
  const Buckets buckets({.clock = &clock});
  Limiter first{buckets, "login", kThree};
  Limiter second{buckets, "login", kThree};
  EXPECT_EQ(spends_until_denied(first, "a"), 3);
  EXPECT_FALSE(second.spend("a").allowed);
}

TEST_F(LimiterTest, KeepsLongNamesAndKeysApart) {
  const Buckets buckets({.clock = &clock});
  const std::string long_text(10'000, 'x');
  Limiter limiter{buckets, long_text, kThree};
  EXPECT_EQ(spends_until_denied(limiter, long_text), 3);
  EXPECT_EQ(spends_until_denied(limiter, long_text + "y"), 3);
  EXPECT_EQ(limiter.peek(long_text).remaining, 0);
}

TEST_F(LimiterTest, OutlivesTheHandleOfItsBuckets) {
  auto buckets = std::make_unique<Buckets>(Buckets::Options{.clock = &clock});
  Limiter limiter{*buckets, "a", kThree};
  buckets.reset();
  EXPECT_EQ(spends_until_denied(limiter, "a"), 3);
}

TEST_F(LimiterTest, MovesWithItsStateAndOverrides) {
  Limiter limiter{kThree, {.clock = &clock}};
  limiter.spend("a");
  ASSERT_TRUE(limiter.set_override("b", kTen));
  Limiter moved = std::move(limiter);
  EXPECT_EQ(moved.peek("a").remaining, 2);
  EXPECT_EQ(moved.peek("b").remaining, 10);
}

TEST_F(LimiterTest, ChargesTogetherAllOrNone) {
  Buckets buckets({.clock = &clock});
  Limiter addresses{buckets, "address", kTen};
  Limiter accounts{buckets, "account", kThree};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(buckets.spend_together({{addresses, "ip"}, {accounts, "alice"}}).allowed);
  const Buckets::Verdict denied = buckets.spend_together({{addresses, "ip"}, {accounts, "alice"}});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.strictest, 1);
  ASSERT_EQ(denied.all.size(), 2);
  EXPECT_TRUE(denied.all[0].allowed);
  EXPECT_EQ(denied.all[1].retry_after, kThree.interval());
  EXPECT_EQ(addresses.peek("ip").remaining, 7);
}

TEST_F(LimiterTest, ChargesInOrderUpToTheFirstDenial) {
  Buckets buckets({.clock = &clock});
  Limiter own{buckets, "own", kThree};
  Limiter everyone{buckets, "everyone", kTen};
  for (int i = 0; i < 5; ++i) {
    const Buckets::Verdict verdict = buckets.spend_in_order({{own, "abuser"}, {everyone, ""}});
    EXPECT_EQ(verdict.allowed, i < 3);
    EXPECT_EQ(verdict.all.size(), i < 3 ? 2 : 1);
  }
  EXPECT_EQ(everyone.peek("").remaining, 7);
}

TEST_F(LimiterTest, TakesNothingOnTheWayToACostThatCanNeverPass) {
  Buckets buckets({.clock = &clock});
  Limiter own{buckets, "own", kThree};
  Limiter everyone{buckets, "everyone", kTen};
  const Buckets::Verdict verdict = buckets.spend_in_order({{own, "a"}, {everyone, "", 11}});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.all[verdict.strictest].retry_after, kNever);
  EXPECT_EQ(own.peek("a").remaining, 3);
}

TEST_F(LimiterTest, ARefundAfterALimitIsRelaxedAddsToABucketThatWasEmptyThen) {
  Limiter limiter{Limit::per_day(1000), {.clock = &clock}};
  EXPECT_TRUE(limiter.spend("a", 1000).allowed);
  ASSERT_TRUE(limiter.set_override("a", Limit::per_second(10)));
  EXPECT_EQ(limiter.refund("a", 2).remaining, 2);
  EXPECT_TRUE(limiter.remove_override("a"));
  EXPECT_TRUE(limiter.spend("b", 1000).allowed);
  ASSERT_TRUE(limiter.set_override("b", Limit::per_second(10)));
  clock.advance(300ms);
  EXPECT_EQ(limiter.refund("b", 2).remaining, 5);
  EXPECT_EQ(limiter.refund("a", 1'000'000).remaining, 1000);
  EXPECT_EQ(limiter.refund("b", std::numeric_limits<Count>::max()).remaining, 10);
}

TEST_F(LimiterTest, RefusesToGiveBackLessThanNothing) {
  Limiter limiter{kThree, {.clock = &clock}};
  EXPECT_TRUE(limiter.spend("a", 2).allowed);
  const Decision refused = limiter.refund("a", -1);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, kNever);
  EXPECT_EQ(refused.remaining, 1);
  EXPECT_EQ(limiter.peek("a").remaining, 1);
}

TEST_F(LimiterTest, ChargesSeveralWithTheirCostsAndOverrides) {
  Buckets buckets({.clock = &clock});
  Limiter a{buckets, "a", kThree};
  Limiter b{buckets, "b", kTen};
  ASSERT_TRUE(a.set_override("vip", kTen));
  const Buckets::Verdict verdict = buckets.spend_together({{a, "vip", 8}, {b, "x", 4}});
  EXPECT_TRUE(verdict.allowed);
  EXPECT_EQ(verdict.all[0].remaining, 2);
  EXPECT_EQ(verdict.all[1].remaining, 6);
  EXPECT_FALSE(buckets.spend_together({{a, "plain", 8}, {b, "x", 4}}).allowed);
  EXPECT_FALSE(buckets.spend_together({{a, "vip", -1}, {b, "x", 1}}).allowed);
  EXPECT_EQ(b.peek("x").remaining, 6);
}

TEST_F(LimiterTest, ChargesTheSameBucketTwiceWithTheSummedCost) {
  Buckets buckets({.clock = &clock});
  Limiter a{buckets, "a", kThree};
  EXPECT_FALSE(buckets.spend_together({{a, "x", 2}, {a, "x", 2}}).allowed);
  EXPECT_TRUE(buckets.spend_together({{a, "x", 2}, {a, "x", 1}}).allowed);
  EXPECT_EQ(a.peek("x").remaining, 0);
}

TEST_F(LimiterTest, ChargesAsManyAtOnceAsTheBoundSaysAndNoMore) {
  Buckets buckets({.clock = &clock});
  Limiter limiter{buckets, "a", kThree};
  std::vector<std::string> keys;
  for (std::size_t i = 0; i <= bounds::charges_max; ++i) keys.push_back(std::to_string(i));
  std::vector<Buckets::Charge> charges;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) charges.push_back({limiter, keys[i]});
  EXPECT_TRUE(buckets.spend_together(charges).allowed);
  EXPECT_EQ(buckets.stats().buckets, bounds::charges_max);
  charges.push_back({limiter, keys.back()});
  EXPECT_DEATH(buckets.spend_together(charges), "charges_max");
}

TEST_F(LimiterTest, RefusesALimiterOnOtherBuckets) {
  Buckets buckets({.clock = &clock});
  Limiter stranger{kThree, {.clock = &clock}};
  EXPECT_DEATH(buckets.spend_together({{stranger, "a"}}), "state_");
}

TEST_F(LimiterTest, AllowsWhenNothingIsCharged) {
  Buckets buckets({.clock = &clock});
  EXPECT_TRUE(buckets.spend_together(std::span<const Buckets::Charge>{}).allowed);
}

TEST_F(LimiterTest, EvictsFromAFullTableAndCounts) {
  Limiter limiter{Limit::per_hour(3), {.max_buckets = 100, .clock = &clock}};
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limiter.spend(std::to_string(i)).allowed) << i;
  EXPECT_LE(limiter.stats().buckets, 100);
  EXPECT_EQ(limiter.stats().evicted, 900);
}

TEST_F(LimiterTest, GivesMemoryBackWhenMaintained) {
  Limiter limiter{kTen, {.clock = &clock}};
  const std::uint64_t before = limiter.stats().bytes;
  for (int i = 0; i < 100'000; ++i) limiter.spend(std::to_string(i));
  const std::uint64_t full = limiter.stats().bytes;
  EXPECT_GT(full, before);
  clock.advance(10s);
  for (int round = 0; round < 3; ++round) {
    while (!limiter.maintain()) {
    }
  }
  EXPECT_EQ(limiter.stats().buckets, 0);
  EXPECT_LT(limiter.stats().bytes, full);
}

std::map<std::string, Count> listed(const Limiter& limiter) {
  std::map<std::string, Count> all;
  limiter.for_each([&](std::string_view key, const Decision& standing) { all[std::string(key)] = standing.remaining; });
  return all;
}

TEST_F(LimiterTest, ListsTheBucketsThatAreNotFullIfNamesAreKept) {
  const Buckets buckets({.names = true, .clock = &clock});
  Limiter limiter{buckets, "a:b", kThree};
  Limiter other{buckets, "a", kThree};
  limiter.spend("x");
  limiter.spend("b:y", 2);
  limiter.spend("full", 1);
  limiter.refund("full", 1);
  other.spend("b:z");
  EXPECT_THAT(listed(limiter), UnorderedElementsAre(Pair("x", 2), Pair("b:y", 1)));
  EXPECT_THAT(listed(other), ElementsAre(Pair("b:z", 2)));
  clock.advance(1h);
  EXPECT_THAT(listed(limiter), ElementsAre());
}

TEST_F(LimiterTest, MayBeCalledWhileItLists) {
  Limiter limiter{kThree, {.names = true, .clock = &clock}};
  limiter.spend("a");
  limiter.for_each([&](std::string_view key, const Decision&) { EXPECT_TRUE(limiter.reset(key)); });
  EXPECT_THAT(listed(limiter), ElementsAre());
}

TEST_F(LimiterTest, ListsNothingUnlessNamesAreKept) {
  Limiter limiter{kThree, {.clock = &clock}};
  limiter.spend("a");
  EXPECT_THAT(listed(limiter), ElementsAre());
}

TEST_F(LimiterTest, SaysWhyItCannotBeMade) {
  EXPECT_EQ(Limiter::make(kTen, {.max_buckets = 0}).error(),
            (Error{Fault::invalid, "max_buckets 0 must be from 1 to 1000000000"}));
  EXPECT_FALSE(Buckets::make({.max_buckets = bounds::buckets_max + 1}));
  EXPECT_DEATH(Limiter(kTen, {.max_buckets = 0}), "max_buckets 0 must be from 1");
}

TEST(Limiter, ALoweredOverrideFreesASpentClientAfterItsNewInterval) {
  using namespace std::chrono_literals;
  ManualClock clock{Time{10s}};
  Limiter limiter{Limit::per_day(1000), {.clock = &clock}};
  EXPECT_TRUE(limiter.spend("a", 1000).allowed);
  ASSERT_TRUE(limiter.set_override("a", Limit::per_second(10)));
  EXPECT_EQ(limiter.spend("a").retry_after, 100ms);
  clock.advance(100ms);
  EXPECT_TRUE(limiter.spend("a").allowed);
}

TEST_F(LimiterTest, TimePassesForASilentClientFromTheChangeOfItsNumbers) {
  const Buckets buckets({.names = true, .clock = &clock});
  Limiter hourly{buckets, "login", Limit::per_hour(3)};
  for (const std::string_view key : {"a", "b", "c", "d"}) EXPECT_EQ(spends_until_denied(hourly, key), 3);
  clock.advance(10s);
  Limiter fast{buckets, "login", Limit::per_second(3)};  // as after a reload
  EXPECT_EQ(fast.peek("a").retry_after, fast.limit_of("a").interval());
  clock.advance(fast.peek("a").retry_after);
  EXPECT_TRUE(fast.spend("a").allowed);
  EXPECT_FALSE(fast.spend("a").allowed);
  // A list shows what counts, and leaves the bucket to whoever knows its numbers.
  std::map<std::string, Count, std::less<>> listed;
  const auto list = [&] {
    listed.clear();
    fast.for_each([&](std::string_view key, const Decision& d) { listed.emplace(key, d.remaining); });
  };
  list();
  EXPECT_EQ(listed, (std::map<std::string, Count, std::less<>>{{"a", 0}, {"b", 1}, {"c", 1}, {"d", 1}}));
  EXPECT_EQ(hourly.peek("d").reset_after, 1h - 10s - fast.limit_of("a").interval());
  clock.advance(6s);
  list();
  EXPECT_TRUE(listed.empty());
  EXPECT_EQ(spends_until_denied(fast, "b"), 3);
  std::array<Decision, 2> decisions;
  fast.spend_batch(std::array<std::string_view, 2>{"c", "c"}, decisions, 2);
  EXPECT_TRUE(decisions[0].allowed);
  EXPECT_FALSE(decisions[1].allowed);
}

}  // namespace
}  // namespace weir::limiter_test
