#include "weir/store/redis/asked.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace weir::redis::asked_test {
namespace {

using namespace std::chrono_literals;

constexpr Script kScript{"return 1", "sha"};
constexpr Limit kTwo = Limit::per_second(2);  // interval 500 ms
constexpr Quota kHour{5, {Wall{0s}, Wall{60min}}, Wall{120min}};

// The slot is the key's last character.
const Asked::Keys kKeys{"p:", "", [](std::string_view key) { return key.back() - '0'; }};

Charge of(std::string_view key, Count cost = 1, bool shadow = false) {
  Charge charge;
  charge.limit_name = key;
  charge.rate = RateCharge{key, kTwo};
  charge.cost = cost;
  charge.shadow = shadow;
  return charge;
}

std::string join(std::span<const std::string_view> words) {
  std::string out;
  for (const std::string_view word : words) out.append(out.empty() ? "" : " ").append(word);
  return out;
}

class AskedTest : public testing::Test {
 protected:
  void begin(std::vector<Charge> charges, Order order = Order::together, Mode mode = Mode::spend) {
    ASSERT_TRUE(asked_.begin({0, charges, mode, order}, kKeys));
  }
  Result<void> reply(std::size_t part, std::int64_t number) {
    resp::Reply parsed;
    EXPECT_EQ(parsed.parse(":" + std::to_string(number) + "\r\n"), resp::Parsed::done);
    return asked_.absorb(part, parsed);
  }
  Result<void> reply(std::size_t part, const std::vector<std::int64_t>& numbers) {
    std::string bytes = "*" + std::to_string(numbers.size()) + "\r\n";
    for (const std::int64_t number : numbers) bytes += ":" + std::to_string(number) + "\r\n";
    resp::Reply parsed;
    EXPECT_EQ(parsed.parse(bytes), resp::Parsed::done);
    return asked_.absorb(part, parsed);
  }
  std::string command(std::size_t part) { return join(asked_.command(part, kScript)); }

  Asked asked_;
};

TEST_F(AskedTest, OneSlotIsOneScript) {
  begin({of("a:1"), of("b:1", 3), of("c:1", 1, true)});
  ASSERT_EQ(asked_.end_part(), 1u);
  EXPECT_EQ(command(0),
            "EVALSHA sha 3 p:b:a:1 p:b:b:1 p:b:c:1 spend 3 b 500000000 1000000000 b -1 1000000000 "
            "B 500000000 1000000000");
}

TEST_F(AskedTest, InOrderMarksWhereAGroupBegins) {
  begin({of("a:1"), of("b:1")}, Order::in_order);
  EXPECT_EQ(command(0), "EVALSHA sha 2 p:b:a:1 p:b:b:1 spend 2 b 500000000 1000000000 +b 500000000 1000000000");
}

TEST_F(AskedTest, TogetherAsksAllSlotsAtOnceAndTakesBackWhatWasSpentInVain) {
  begin({of("a:1"), of("b:2"), of("c:1", 1, true)});
  ASSERT_EQ(asked_.end_part(), 2u);
  EXPECT_EQ(asked_.slot(1), 2);
  ASSERT_TRUE(reply(0, {100, 5, 0, 500'000'000, 500'000'000}));
  ASSERT_TRUE(reply(1, {100, 9, 0, -1 - 750'000'000}));
  EXPECT_FALSE(asked_.advance());
  EXPECT_TRUE(asked_.must_undo(0));
  EXPECT_FALSE(asked_.must_undo(1));
  EXPECT_EQ(join(asked_.undo_command(0, kScript)), "EVALSHA sha 1 p:b:a:1 undo 100 5 1 b 500000000 1000000000")
      << "the shadow stays charged";
  const Verdict verdict = asked_.verdict();
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.strictest, 1u);
  EXPECT_EQ(verdict.all[0], (Decision{true, 2, 2, 0ns, 0ns})) << "as it stands without the spend";
  EXPECT_EQ(verdict.all[2].strictest().remaining, 1);
}

TEST_F(AskedTest, NothingIsTakenBackWhenAllAllow) {
  begin({of("a:1"), of("b:2")});
  ASSERT_TRUE(reply(0, {100, 5, 0, 500'000'000}));
  ASSERT_TRUE(reply(1, {100, 9, 0, 500'000'000}));
  EXPECT_FALSE(asked_.advance());
  EXPECT_FALSE(asked_.must_undo(0));
  EXPECT_TRUE(asked_.verdict().allowed);
}

TEST_F(AskedTest, APartThatFailedMakesTheOthersVain) {
  begin({of("a:1"), of("b:2")});
  ASSERT_TRUE(reply(0, {100, 5, 0, 500'000'000}));
  asked_.abandon();
  EXPECT_FALSE(asked_.advance());
  EXPECT_TRUE(asked_.must_undo(0));
  EXPECT_FALSE(asked_.must_undo(1)) << "nobody knows what became of it";
}

TEST_F(AskedTest, InOrderTheNextSlotIsAskedWhenTheOneBeforeHasAllowed) {
  begin({of("a:1"), of("b:1"), of("c:2"), of("d:1")}, Order::in_order);
  ASSERT_EQ(asked_.end_part(), 1u);
  ASSERT_TRUE(reply(0, {100, 5, 0, 500'000'000, 500'000'000}));
  ASSERT_TRUE(asked_.advance());
  EXPECT_EQ(asked_.first_part(), 1u);
  EXPECT_EQ(asked_.slot(1), 2);
  ASSERT_TRUE(reply(1, -1 - 750'000'000));
  EXPECT_FALSE(asked_.advance());
  EXPECT_FALSE(asked_.must_undo(1));
  EXPECT_EQ(asked_.verdict().all.size(), 3u) << "the last one was not asked";
  EXPECT_FALSE(asked_.is_denied_for_all()) << "a repetition would charge the first two again";
}

TEST_F(AskedTest, OnlyADenialThatChargesNothingIsWorthRemembering) {
  const std::int64_t denied = -1 - 750'000'000;
  begin({of("a:1")});
  EXPECT_FALSE(asked_.is_denied_for_all());
  ASSERT_TRUE(reply(0, denied));
  EXPECT_TRUE(asked_.is_denied_for_all());
  begin({of("a:1", 1, true)});
  ASSERT_TRUE(reply(0, denied));
  EXPECT_FALSE(asked_.is_denied_for_all()) << "a shadow denies nobody";
  begin({of("a:1")}, Order::together, Mode::peek);
  ASSERT_TRUE(reply(0, denied));
  EXPECT_FALSE(asked_.is_denied_for_all());
}

TEST_F(AskedTest, ARememberedDenialAges) {
  begin({of("a:1")});
  const std::vector<Decision> remembered = {{false, 2, 0, 250ms, 750ms}};
  asked_.recall(remembered, 200ms);
  EXPECT_EQ(asked_.verdict().all[0], (Decision{false, 2, 0, 50ms, 550ms}));
  EXPECT_FALSE(asked_.verdict().allowed);
}

TEST_F(AskedTest, ARememberedDenialInOrderNamesNoLimitThatWasNotAsked) {
  begin({of("a:1"), of("b:1")}, Order::in_order);
  const std::vector<Decision> remembered = {{false, 2, 0, 250ms, 750ms}, {}};
  asked_.recall(remembered, 200ms);
  ASSERT_EQ(asked_.verdict().all.size(), 1u);
  EXPECT_EQ(asked_.verdict().all[0], (Decision{false, 2, 0, 50ms, 550ms}));
}

TEST_F(AskedTest, OtherNumbersCostsOrOrderAreAnotherQuestion) {
  begin({of("a:1")});
  const std::string first(asked_.identity());
  begin({of("a:1")});
  EXPECT_EQ(asked_.identity(), first);
  begin({of("a:1", 2)});
  EXPECT_NE(asked_.identity(), first);
  begin({of("a:1")}, Order::in_order);
  EXPECT_NE(asked_.identity(), first);
  Charge other = of("a:1");
  other.rate->limit = Limit::per_second(3);
  begin({other});
  EXPECT_NE(asked_.identity(), first);
}

TEST_F(AskedTest, OneBucketIsAskedInShortAndDecidedByWhatItIsLeftWith) {
  begin({of("a:1")});
  EXPECT_EQ(command(0), "EVALSHA sha 1 p:b:a:1 s 500000000 1000000000");
  ASSERT_TRUE(reply(0, 500'000'000));
  EXPECT_EQ(asked_.verdict().all[0], (Decision{true, 2, 1, 0ns, 500ms}));
  begin({of("a:1", 3)}, Order::together, Mode::peek);
  EXPECT_EQ(command(0), "EVALSHA sha 1 p:b:a:1 p -1 1000000000");
  ASSERT_TRUE(reply(0, -1));
  EXPECT_EQ(asked_.verdict().all[0], (Decision{false, 2, 2, kNever, 0ns}));
  begin({of("a:1", 3)}, Order::together, Mode::refund);
  EXPECT_EQ(command(0), "EVALSHA sha 1 p:b:a:1 r 1500000000 1000000000");
  ASSERT_TRUE(reply(0, 0));
  EXPECT_EQ(asked_.verdict().all[0], (Decision{true, 2, 2, 0ns, 0ns}));
  begin({of("a:1")});
  ASSERT_TRUE(reply(0, -1 - 750'000'000));
  EXPECT_EQ(asked_.verdict().all[0], (Decision{false, 2, 0, 250ms, 750ms}));
}

TEST_F(AskedTest, AQuotaIsDecidedByWhatIsUsedAndWhenItEnds) {
  Charge charge = of("a:1", 2);
  charge.rate.reset();
  charge.quota = QuotaCharge{"a:1", kHour};
  begin({charge});
  EXPECT_EQ(command(0), "EVALSHA sha 1 p:w:a:1 spend 1 w 2 5 1 60 120");
  ASSERT_TRUE(reply(0, {60, 5, 0, 2, 60}));
  EXPECT_EQ(asked_.verdict().all[0], LimitDecision({true, 5, 3, 0ns, 59min - 5us}, Kind::quota));
  begin({charge});
  ASSERT_TRUE(reply(0, {60, 0, 0, -1 - 4, 60}));
  EXPECT_EQ(asked_.verdict().all[0], LimitDecision({false, 5, 1, 59min, 59min}, Kind::quota));
}

TEST_F(AskedTest, ALimitWithARateAndAQuotaIsOneDecision) {
  Charge charge = of("a:1");
  charge.quota = QuotaCharge{"a:1", kHour};
  begin({charge, of("b:1")}, Order::in_order);
  EXPECT_EQ(command(0),
            "EVALSHA sha 3 p:b:a:1 p:w:a:1 p:b:b:1 spend 3 b 500000000 1000000000 w 1 5 1 60 120 "
            "+b 500000000 1000000000");
  ASSERT_TRUE(reply(0, {60, 0, 0, 500'000'000, -1 - 5, 60}));
  const Verdict verdict = asked_.verdict();
  EXPECT_FALSE(verdict.allowed);
  ASSERT_EQ(verdict.all.size(), 1u) << "the next limit was not asked";
  EXPECT_EQ(verdict.all[0], LimitDecision({true, 2, 1, 0ns, 500ms}, {false, 5, 0, 59min, 59min}));
  EXPECT_EQ(verdict.speaker().burst, 5);
}

TEST_F(AskedTest, AShadowsRateAndQuotaAreTakenTogether) {
  Charge charge = of("a:1", 1, true);
  charge.quota = QuotaCharge{"a:1", kHour};
  begin({charge, of("b:1", 1, true)});
  EXPECT_EQ(command(0),
            "EVALSHA sha 3 p:b:a:1 p:w:a:1 p:b:b:1 spend 3 B 500000000 1000000000 =W 1 5 1 60 120 "
            "B 500000000 1000000000");
}

TEST_F(AskedTest, AShadowWhoseHalvesLieInTwoSlotsTakesTheOneBackThatPassedAlone) {
  for (const Order order : {Order::together, Order::in_order}) {
    Charge charge = of("a:1", 1, true);
    charge.quota = QuotaCharge{"a:2", kHour};
    begin({charge, of("b:3")}, order);
    ASSERT_TRUE(reply(0, {60, 0, 0, 500'000'000}));
    ASSERT_TRUE(reply(1, {60, 0, 0, -1 - 5, 60}));
    if (order == Order::together) {
      ASSERT_TRUE(reply(2, {60, 0, 0, 500'000'000}));
      EXPECT_FALSE(asked_.advance());
    } else {
      EXPECT_TRUE(asked_.advance()) << "the next stage";
      ASSERT_TRUE(reply(2, 500'000'000));
      EXPECT_FALSE(asked_.advance());
    }
    EXPECT_TRUE(asked_.must_undo(0));
    EXPECT_FALSE(asked_.must_undo(1));
    EXPECT_FALSE(asked_.must_undo(2));
    EXPECT_EQ(join(asked_.undo_command(0, kScript)), "EVALSHA sha 1 p:b:a:1 undo 60 0 1 B 500000000 1000000000");
    const Verdict verdict = asked_.verdict();
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.all[0].half(Kind::bucket)->remaining, 2) << "as it will be when that is taken back";
  }
}

TEST_F(AskedTest, TakesAsManyChargesAndBucketsAsItsBounds) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) keys.push_back("k" + std::to_string(i) + ":1");
  std::vector<Charge> charges;
  for (const std::string& key : keys) {
    charges.push_back(of(key, std::numeric_limits<Count>::max()));
    charges.back().quota = QuotaCharge{key, kHour};
  }
  begin(charges);
  ASSERT_EQ(asked_.keys(0), bounds::charged_buckets_max);
  EXPECT_EQ(asked_.command(0, kScript).size(), 3 + bounds::charged_buckets_max + 2 + bounds::charges_max * (3 + 6));
  std::vector<std::int64_t> numbers = {60, 0, 0};
  for (std::size_t i = 0; i < bounds::charges_max; ++i) numbers.insert(numbers.end(), {-1, -1, 60});
  ASSERT_TRUE(reply(0, numbers));
  EXPECT_EQ(asked_.verdict().all.size(), bounds::charges_max);
  EXPECT_EQ(asked_.verdict().speaker().retry_after, kNever);
}

TEST_F(AskedTest, TurnsAwayRepliesThatAreNotTheScripts) {
  begin({of("a:1")});
  EXPECT_FALSE(reply(0, {100, 5, 0, 500'000'000})) << "one number is asked for";
  EXPECT_FALSE(reply(0, 1'000'000'001)) << "no bucket is emptier than empty";
  EXPECT_FALSE(reply(0, -1 - 500'000'000)) << "it would have passed";
  EXPECT_FALSE(reply(0, 499'999'999)) << "less than it costs";
  EXPECT_TRUE(reply(0, 500'000'000));
  begin({of("a:1"), of("b:1")});
  EXPECT_FALSE(reply(0, 500'000'000));
  EXPECT_FALSE(reply(0, {100, 5}));
  EXPECT_FALSE(reply(0, {100, 5, 0}));
  EXPECT_FALSE(reply(0, {100, 5, 0, 500'000'000, 500'000'000, 0}));
  EXPECT_TRUE(reply(0, {100, 5, 0, 500'000'000, 500'000'000}));
}

}  // namespace
}  // namespace weir::redis::asked_test
