#include "weir/simulate/replay.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <vector>

#include "weir/config/parse.h"

namespace weir::simulate::replay_test {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<const Policy> policy_of(std::string_view yaml) {
  config::Outcome outcome = config::parse(yaml, "test.yaml", {});
  if (const auto* const problems = std::get_if<config::Problems>(&outcome)) {
    ADD_FAILURE() << config::text(*problems);
    return nullptr;
  }
  return std::get<config::Loaded>(outcome).policy;
}

struct Asked {
  std::vector<NamedCharge> charges;
  Mode mode = Mode::spend;
  Order order = Order::together;
};

class Replays : public ::testing::Test {
 protected:
  void with(std::string_view yaml) { replay_.emplace(policy_of(yaml)); }

  Answer ask(const Asked& asked, Duration t) {
    const Query query{NamedCharges{asked.charges, asked.order}, asked.mode};
    const Result<Answer> answer = replay_->ask(query, {Time{t}, Wall{t}});
    EXPECT_TRUE(answer) << answer.error().detail;
    return *answer;
  }
  Answer spend(std::string_view limit, Duration t, Count cost = 1) { return ask({{{limit, "y", cost}}}, t); }
  Count left(std::string_view limit, Duration t) { return ask({{{limit, "y", 1}}, Mode::peek}, t).decision.remaining; }

  std::optional<Replay> replay_;
};

TEST_F(Replays, TheWorkedExampleOfTheModel) {
  with("limits: {x: {burst: 20, count: 20, period: 1s}}");
  EXPECT_EQ(spend("x", 0ms).decision, (Decision{true, 20, 19, 0s, 50ms}));
  EXPECT_EQ(spend("x", 5ms).decision, (Decision{true, 20, 18, 0s, 95ms}));
  for (int i = 0; i < 18; ++i) EXPECT_TRUE(spend("x", i < 17 ? 5ms : 49ms).decision.allowed);
  EXPECT_EQ(spend("x", 49ms).decision, (Decision{false, 20, 0, 1ms, 951ms}));
  EXPECT_EQ(spend("x", 50ms).decision, (Decision{true, 20, 0, 0s, 1s}));
}

TEST_F(Replays, ADenialWritesNothing) {
  with("limits: {x: {rate: 1/s}}");
  EXPECT_FALSE(spend("x", 0s, 2).decision.allowed);
  EXPECT_EQ(replay_->size(), 0u);
  EXPECT_EQ(spend("x", 0s, 2).decision.retry_after, kNever);
}

TEST_F(Replays, ARefundOfAnUntouchedBucketLeavesItUntouched) {
  with("limits: {x: {rate: 1/s}}");
  EXPECT_EQ(ask({{{"x", "y", 1}}, Mode::refund}, 10s).decision.remaining, 1);
  EXPECT_EQ(replay_->size(), 0u);
  EXPECT_TRUE(spend("x", 9s).decision.allowed);
}

TEST_F(Replays, TogetherTheStrictestDenialSpeaksAndNobodyIsCharged) {
  with("limits: {a: {rate: 3/s}, b: {rate: 1/m}, c: {rate: 1/s}}");
  const Asked all{{{"a", "y", 1}, {"b", "y", 1}, {"c", "y", 1}}};
  EXPECT_TRUE(ask(all, 0s).decision.allowed);
  const Answer denied = ask(all, 0s);
  EXPECT_EQ(denied.limit, "b");
  EXPECT_EQ(denied.decision, (Decision{false, 1, 0, 1min, 1min}));
  EXPECT_EQ(left("a", 0s), 2);
}

TEST_F(Replays, InOrderTheFirstDenialStops) {
  with("limits: {a: {rate: 3/s}, b: {rate: 1/s}, c: {rate: 3/s}}");
  const Asked all{{{"a", "y", 1}, {"b", "y", 1}, {"c", "y", 1}}, Mode::spend, Order::in_order};
  EXPECT_TRUE(ask(all, 0s).decision.allowed);
  EXPECT_EQ(ask(all, 0s).limit, "b");
  EXPECT_EQ(left("a", 0s), 1);
  EXPECT_EQ(left("c", 0s), 2);
}

TEST_F(Replays, ABlockedIdDeniesForEverAndTogetherNobodyIsCharged) {
  with("{limits: {a: {rate: 3/s}, b: {rate: 1/s}}, overrides: {'b:y': {blocked: true}}}");
  const Asked together{{{"a", "y", 1}, {"b", "y", 1}}};
  const Answer denied = ask(together, 0s);
  EXPECT_EQ(denied.limit, "b");
  EXPECT_EQ(denied.id, "y");
  EXPECT_EQ(denied.decision, (Decision{false, 0, 0, kNever, kNever}));
  EXPECT_EQ(left("a", 0s), 3);
  EXPECT_FALSE(ask({together.charges, Mode::peek}, 0s).decision.allowed);
}

TEST_F(Replays, InOrderWhatComesBeforeABlockedIdIsCharged) {
  with("{limits: {a: {rate: 1/s}, b: {rate: 1/s}}, overrides: {'b:y': {blocked: true}}}");
  const Asked in_order{{{"a", "y", 1}, {"b", "y", 1}}, Mode::spend, Order::in_order};
  EXPECT_EQ(ask(in_order, 0s).limit, "b");
  EXPECT_EQ(left("a", 0s), 0);
  EXPECT_EQ(ask(in_order, 0s).limit, "a");
}

TEST_F(Replays, AShadowLimitLivesItsOwnLife) {
  with("limits: {a: {rate: 1/s}, s: {rate: 2/s, mode: shadow}}");
  const Asked both{{{"s", "y", 1}, {"a", "y", 1}}};
  EXPECT_EQ(ask(both, 0s).limit, "a");
  EXPECT_EQ(left("s", 0s), 1);
  // Denied by a; the shadow would have allowed it and is charged.
  EXPECT_FALSE(ask(both, 0s).decision.allowed);
  EXPECT_EQ(left("s", 0s), 0);
  const Answer alone = spend("s", 0s);
  EXPECT_TRUE(alone.decision.allowed);
  EXPECT_EQ(alone.decision.retry_after, 500ms);
}

TEST_F(Replays, ALimitThatIsOffOrUnlimitedHasNoBound) {
  with("{limits: {a: {rate: 1/s, mode: off}, b: {average: 0, period: 1s}}}");
  EXPECT_FALSE(spend("a", 0s).bounded);
  EXPECT_FALSE(spend("b", 0s).bounded);
  EXPECT_TRUE(spend("b", 0s, 1'000'000).decision.allowed);
  EXPECT_EQ(replay_->size(), 0u);
}

TEST_F(Replays, AShadowLimitIsChargedOnlyIfItsRateAndItsQuotaBothPass) {
  with("limits: {s: {rate: 5/s, quota: 2/day, mode: shadow}}");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(spend("s", 0s).decision.allowed);
  const Answer denied = spend("s", 0s);
  EXPECT_TRUE(denied.decision.allowed) << "by a shadow";
  EXPECT_EQ(denied.decision.burst, 2) << "the quota is the stricter half";
  EXPECT_EQ(denied.decision.retry_after, 24h);
  EXPECT_EQ(left("s", 24h), 2) << "a new day";
}

TEST_F(Replays, NumbersAndQuotaOfOneLimitAreChargedTogetherEvenInOrder) {
  with("limits: {a: {rate: 5/s, quota: 2/day}}");
  const Asked in_order{{{"a", "y", 1}}, Mode::spend, Order::in_order};
  EXPECT_TRUE(ask(in_order, 0s).decision.allowed);
  EXPECT_TRUE(ask(in_order, 0s).decision.allowed);
  const Answer denied = ask(in_order, 0s);
  EXPECT_EQ(denied.decision, (Decision{false, 2, 0, 24h, 24h}));
  // The quota's denial took nothing from the bucket.
  EXPECT_EQ(replay_->size(), 1u);
  EXPECT_EQ(ask({{{"a", "y", 5}}, Mode::peek}, 0s).decision.retry_after, kNever);
}

TEST_F(Replays, ALineOutOfOrderGivesNothingAway) {
  with("limits: {x: {rate: 20/s}}");
  EXPECT_TRUE(spend("x", 1s, 20).decision.allowed);
  EXPECT_EQ(spend("x", 950ms).decision, (Decision{false, 20, 0, 50ms, 1s}));
  EXPECT_EQ(spend("x", 1s).decision, (Decision{false, 20, 0, 50ms, 1s}));
  EXPECT_TRUE(spend("x", 1050ms).decision.allowed);
}

TEST_F(Replays, AClockSetBackCostsAtMostOneWindow) {
  with("limits: {x: {rate: 20/s}}");
  for (const Duration set_back : {Duration{1s}, Duration{1s + 1ns}, Duration{1h}}) {
    EXPECT_TRUE(spend("x", 2h, 20).decision.allowed);
    EXPECT_FALSE(spend("x", 2h - set_back).decision.allowed);
    EXPECT_TRUE(spend("x", 2h - set_back + 1s + 50ms).decision.allowed) << set_back.count();
    ask({{{"x", "y", 1}}, Mode::reset}, 2h);
  }
}

TEST_F(Replays, WhatIsImpossibleStopsAtTheFirstDenialToo) {
  with("limits: {one: {rate: 1/s}, five: {rate: 5/s}}");
  EXPECT_TRUE(spend("one", 1s).decision.allowed);
  const Answer denied = ask({{{"one", "y", 1}, {"five", "y", 7}}, Mode::spend, Order::in_order}, 1500ms);
  EXPECT_EQ(denied.limit, "one");
  EXPECT_EQ(denied.decision.retry_after, 500ms);
}

TEST_F(Replays, ABlockedIdStaysBlockedWhateverIsGivenBack) {
  with("{limits: {a: {rate: 3/s}}, overrides: {'a:y': {blocked: true}}}");
  for (const Mode mode : {Mode::peek, Mode::refund, Mode::reset}) {
    EXPECT_EQ(ask({{{"a", "y", 1}}, mode}, 0s).decision, (Decision{false, 0, 0, kNever, kNever}));
  }
}

TEST_F(Replays, AShadowLimitTellsWhomItWouldBlock) {
  with("{limits: {a: {rate: 3/s, mode: shadow}}, overrides: {'a:y': {blocked: true}}}");
  EXPECT_EQ(spend("a", 0s).decision, (Decision{true, 0, 0, kNever, Duration::zero()}));
}

TEST_F(Replays, AQuotaThatIsSpentFollowsAClockSetBack) {
  with("limits: {a: {quota: 1/hour}}");
  EXPECT_TRUE(spend("a", 100h).decision.allowed);
  EXPECT_FALSE(spend("a", 1h).decision.allowed);
  EXPECT_TRUE(spend("a", 2h).decision.allowed);
}

TEST_F(Replays, ResetForgetsBothBuckets) {
  with("limits: {a: {rate: 1/h, quota: 1/day}}");
  EXPECT_TRUE(spend("a", 0s).decision.allowed);
  const Answer reset = ask({{{"a", "y", 7}}, Mode::reset}, 0s);
  EXPECT_TRUE(reset.decision.allowed);
  EXPECT_EQ(reset.decision.remaining, 1);
  EXPECT_EQ(reset.decision.reset_after, 0s);
  EXPECT_EQ(replay_->size(), 0u);
  EXPECT_TRUE(spend("a", 0s).decision.allowed);
}

TEST_F(Replays, RefusesWhatThePolicyRefuses) {
  with("limits: {a: {rate: 1/s, id: regId}}");
  const std::vector<NamedCharge> unknown{{"b", "y", 1}};
  EXPECT_EQ(replay_->ask({NamedCharges{unknown}}, {}).error().fault, Fault::unknown);
  const std::vector<NamedCharge> bad{{"a", "y", 1}};
  EXPECT_EQ(replay_->ask({NamedCharges{bad}}, {}).error().fault, Fault::invalid);
}

// The guarantee of the model: in any span w, spent minus refunded is at most burst + w / interval. This test makes no
// refunds: they are up to the caller.
TEST_F(Replays, NeverGrantMoreThanPromised) {
  EXPECT_TRUE(rc::check("promise", [this] {
    with("limits: {a: {burst: 5, count: 10, period: 1s}}");
    const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
        rc::gen::pair(rc::gen::inRange(0, 300), rc::gen::inRange(0, 7)));
    Duration t{};
    std::vector<std::pair<Duration, Count>> granted;
    for (const auto& [wait, cost] : steps) {
      t += std::chrono::milliseconds{wait};
      if (spend("a", t, cost).decision.allowed) granted.emplace_back(t, cost);
      Count sum = 0;
      for (auto at = granted.rbegin(); at != granted.rend(); ++at) {
        sum += at->second;
        RC_ASSERT(sum <= 5 + (t - at->first) / 100ms);
      }
    }
  }));
}

}  // namespace
}  // namespace weir::simulate::replay_test
