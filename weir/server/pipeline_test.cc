#include "weir/server/pipeline.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/config/parse.h"
#include "weir/known/known_keeper.h"
#include "weir/store/memory/memory_store.h"

namespace weir::pipeline_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPolicy = R"(
limits:
  orders: {burst: 2, count: 2, period: 1h}
  daily: {rate: 100/s, quota: 1/day}
  trial: {burst: 1, count: 1, period: 1h, mode: shadow}
overrides:
  orders:7: {blocked: true}
  orders:8: {unlimited: true}
  trial:7: {blocked: true}
)";

struct Collect final : Asker {
  struct Seen {
    bool failed = false;
    Fault fault = Fault::internal;
    bool allowed = false;
    std::string limit;
    std::string bucket;
    Count remaining = 0;
    Duration retry_after{};
  };
  std::map<std::uint64_t, Seen> seen;

  void answered(std::uint64_t sequence, const Result<Answer>& answer) override {
    Seen& one = seen[sequence];
    one.failed = !answer;
    if (!answer) {
      one.fault = answer.error().fault;
      return;
    }
    one.allowed = answer->verdict.allowed;
    if (answer->verdict.all.empty()) return;
    one.limit = std::string(answer->labels[answer->verdict.strictest].limit);
    one.bucket = std::string(answer->labels[answer->verdict.strictest].bucket());
    one.remaining = answer->verdict.speaker().remaining;
    one.retry_after = answer->verdict.speaker().retry_after;
  }
};

class PipelineTest : public testing::Test {
 protected:
  static std::shared_ptr<const config::Loaded> load(const std::string& text) {
    auto outcome = config::parse(text, "test.yaml", {});
    return std::make_shared<const config::Loaded>(std::get<config::Loaded>(outcome));
  }

  Collect::Seen ask(std::string_view limit, std::string_view id, Mode mode = Mode::spend) {
    const std::array<NamedCharge, 1> charges = {NamedCharge{limit, id, 1}};
    return ask({NamedCharges{charges}, mode});
  }
  Collect::Seen ask(const Query& query) {
    pipeline_.refresh();
    pipeline_.ask(next_, query, asker_, clock_.now());
    pipeline_.flush(clock_.now());
    return asker_.seen.at(next_++);
  }

  ManualClock clock_{Time{10s}, Wall{std::chrono::hours{1000}}};
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{1, 2}));
  MemoryStore store_{*table_, clock_};
  LoopMetrics metrics_;
  Published<config::Loaded> configuration_{load(kPolicy)};
  KnownKeeper keeper_{nullptr, {}, &clock_};
  std::string log_text_;
  Log log_{[this](std::string_view line) { log_text_ += line.substr(line.find(' ') + 1); }};
  Pipeline pipeline_{configuration_, keeper_.known(), store_, metrics_, clock_, nullptr, &log_};
  Collect asker_;
  std::uint64_t next_ = 0;
};

TEST_F(PipelineTest, ChargesALimitByNameAndNamesItsBucket) {
  EXPECT_TRUE(ask("orders", "1").allowed);
  EXPECT_TRUE(ask("orders", "1").allowed);
  const Collect::Seen third = ask("orders", "1");
  EXPECT_FALSE(third.allowed);
  EXPECT_EQ(third.limit, "orders");
  EXPECT_EQ(third.bucket, "orders:1");
  EXPECT_EQ(third.retry_after, 30min);
}

TEST_F(PipelineTest, APeekInOrderStopsAtTheFirstDenialAsASpendDoes) {
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask("orders", "1").allowed);
  EXPECT_TRUE(ask("daily", "1").allowed);
  const std::array<NamedCharge, 2> charges = {NamedCharge{"orders", "1", 1}, NamedCharge{"daily", "1", 1}};
  for (const Mode mode : {Mode::peek, Mode::spend}) {
    const Collect::Seen seen = ask({NamedCharges{charges, Order::in_order}, mode});
    EXPECT_EQ(seen.limit, "orders");
    EXPECT_EQ(seen.retry_after, 30min);
  }
  EXPECT_EQ(ask({NamedCharges{charges, Order::together}, Mode::peek}).limit, "daily") << "the strictest";
}

TEST_F(PipelineTest, LogsDenialsWithClientAndLimitAtDebugOnly) {
  for (int i = 0; i < 3; ++i) ask("orders", "1");
  EXPECT_EQ(log_text_, "");
  log_.configure(LogLevel::debug, LogFormat::text);
  ask("orders", "1");
  EXPECT_EQ(log_text_, "debug request denied: client=orders:1 limit=orders retry_after=1800\n");
  ask("orders", "2");
  EXPECT_EQ(log_text_, "debug request denied: client=orders:1 limit=orders retry_after=1800\n") << "it passed";
}

TEST_F(PipelineTest, GivingBackToABlockedIdSaysThatItIsBlocked) {
  for (const Mode mode : {Mode::spend, Mode::peek, Mode::refund}) {
    const Collect::Seen seen = ask("orders", "7", mode);
    EXPECT_FALSE(seen.allowed);
    EXPECT_EQ(seen.limit, "orders");
    EXPECT_EQ(seen.retry_after, kNever);
  }
}

TEST_F(PipelineTest, WaitingRetryAfterIsEnoughAfterALimitIsRelaxed) {
  configuration_.publish(load("limits: {login: {rate: 3/h}}"), clock_.now().time);
  for (const std::string_view id : {"looks", "is silent"}) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask("login", id).allowed);
  }
  clock_.advance(10s);
  configuration_.publish(load("limits: {login: {rate: 3/s}}"), clock_.now().time);
  const Duration wait = ask("login", "looks", Mode::peek).retry_after;
  EXPECT_EQ(wait, Limit::per_second(3).interval());
  clock_.advance(wait);
  EXPECT_TRUE(ask("login", "looks").allowed);
  clock_.advance(6s - wait);
  EXPECT_EQ(ask("login", "is silent").remaining, 2);
}

TEST_F(PipelineTest, ASpentBucketIsEmptyWhenAnAdjustmentOrAScheduleChangesItsNumbers) {
  const Limit fast = Limit::per_second(3);
  // Thursday 1970-01-01 is hour 0; this test begins in hour 1000, at 16:00.
  configuration_.publish(load("limits: {login: {rate: 3/s, schedule: [{hours: '16:00-17:00', rate: 3/h}]}}"),
                         Time{10s});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask("login", "1").allowed);
  clock_.advance(50min);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ask("login", "1").allowed);
  EXPECT_FALSE(ask("login", "1").allowed);
  clock_.advance(10min + fast.interval());
  EXPECT_EQ(ask("login", "1").remaining, 0) << "one token since 17:00";
  EXPECT_FALSE(ask("login", "1").allowed);

  Adjustment slow{"login", "2", 3, 3, 1h, clock_.now().wall + 10s, "test", ""};
  ASSERT_TRUE(keeper_.adjust(slow, clock_.now().wall));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask("login", "2").allowed);
  EXPECT_FALSE(ask("login", "2").allowed);
  clock_.advance(10s + 2 * fast.interval());
  EXPECT_EQ(ask("login", "2").remaining, 1) << "two tokens since it ended, though nobody has published that";

  slow.id = "3";
  slow.expires += 1h;
  ASSERT_TRUE(keeper_.adjust(slow, clock_.now().wall));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask("login", "3").allowed);
  clock_.advance(5s);
  EXPECT_TRUE(keeper_.unadjust("login", "3", clock_.now().wall));
  clock_.advance(fast.interval());
  EXPECT_EQ(ask("login", "3").remaining, 0) << "one token since it was taken back";
}

TEST_F(PipelineTest, AnUnknownLimitIsAnErrorAtOnce) {
  EXPECT_TRUE(ask("nope", "1").failed);
  EXPECT_EQ(asker_.seen.at(0).fault, Fault::unknown);
}

// Answers when told to, as a store elsewhere does.
struct Slow final : Store {
  void charge(std::span<const Question> questions, Now, Answers& answers) override {
    to = &answers;
    for (const Question& question : questions) {
      ticket = question.ticket;
      failure_code = question.charges.front().failure_code;
    }
  }
  Answers* to = nullptr;
  Ticket ticket = 0;
  int failure_code = 0;
};

// Issue 14, row 12: a reload in between must not mix two configurations.
TEST_F(PipelineTest, AnAnswerHasTheHeadersAndFailureCodeOfThePolicyThatDecidedIt) {
  struct Headers final : Asker {
    HeaderFamilies seen;
    void answered(std::uint64_t, const Result<Answer>& answer) override { seen = answer->headers; }
  } asker;
  Slow store;
  configuration_.publish(load(std::string(kPolicy) + "headers: {ratelimit: [ietf]}\nfailure_code: 503\n"));
  Pipeline pipeline(configuration_, keeper_.known(), store, metrics_, clock_);
  const std::array<NamedCharge, 1> charges = {NamedCharge{"orders", "1", 1}};
  const Query named{NamedCharges{charges}};
  const Query own{OwnBucket{"k", Limit::per_second(1)}};
  Verdict verdict;
  verdict.allowed = true;
  verdict.all.push_back(Decision{true, 2, 1, 0ns, 30min});
  for (const Query& query : {named, own}) {
    pipeline.ask(0, query, asker, clock_.now());
    pipeline.flush(clock_.now());
    EXPECT_EQ(store.failure_code, 503);
    configuration_.publish(load(kPolicy));
    pipeline.refresh();
    store.to->answer(store.ticket, verdict);
    EXPECT_FALSE(asker.seen.x_ratelimit);
    EXPECT_TRUE(asker.seen.ietf);
    configuration_.publish(load(std::string(kPolicy) + "headers: {ratelimit: [ietf]}\nfailure_code: 503\n"));
    pipeline.refresh();
  }
}

TEST_F(PipelineTest, AFailureHasTheCodeOfThePolicyThatDecidedIt) {
  struct Codes final : Asker {
    int seen = 0;
    void answered(std::uint64_t, const Result<Answer>& answer) override { seen = answer.error().code; }
  } asker;
  Slow store;
  configuration_.publish(load(std::string(kPolicy) + "failure_code: 503\n"));
  Pipeline pipeline(configuration_, keeper_.known(), store, metrics_, clock_);
  const Query own{OwnBucket{"k", Limit::per_second(1)}};
  pipeline.ask(0, own, asker, clock_.now());
  pipeline.flush(clock_.now());
  configuration_.publish(load(kPolicy));
  pipeline.refresh();
  store.to->answer(store.ticket, Error{Fault::unavailable, "gone"});
  EXPECT_EQ(asker.seen, 503);
}

TEST_F(PipelineTest, WhatALoopKeepsOfAConfigurationChangesTogetherWithItsPolicy) {
  std::string record;
  pipeline_.on_configuration([&](const config::Loaded& now) { record = now.settings.admin.read_token; });
  EXPECT_EQ(record, "") << "what is in force, at once";
  configuration_.publish(load("limits: {login: {rate: 7/h}}\nadmin: {read_token: new}\n"));
  EXPECT_EQ(record, "") << "nothing changes while a batch is read";
  EXPECT_TRUE(ask("login", "a").allowed);
  EXPECT_EQ(record, "new");
  EXPECT_EQ(asker_.seen.at(0).remaining, 6);
}

TEST_F(PipelineTest, ABlockedIdIsDeniedForEverAnUnlimitedOneNever) {
  EXPECT_FALSE(ask("orders", "7").allowed);
  EXPECT_EQ(ask("orders", "7").retry_after, kNever);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask("orders", "8").allowed);
}

TEST_F(PipelineTest, AnUnlimitedIdIsNamedWithNumbersThatHaveNoBound) {
  EXPECT_EQ(ask("orders", "8").limit, "orders");
  EXPECT_EQ(asker_.seen.at(0).remaining, kUnbounded);
}

TEST_F(PipelineTest, AShadowLimitTellsAndCountsWhomItWouldBlock) {
  const Collect::Seen seen = ask("trial", "7");
  EXPECT_TRUE(seen.allowed);
  EXPECT_EQ(seen.limit, "trial");
  EXPECT_EQ(seen.retry_after, kNever);
  std::uint64_t counted = 0;
  metrics_.visit(
      [&](const LimitCounters& limit) { counted += limit.limit == "trial" ? limit.shadow_denied.value() : 0; });
  EXPECT_EQ(counted, 1u);
}

TEST_F(PipelineTest, ACostThatCanNeverPassTakesNothingFromThoseBeforeIt) {
  const std::array<NamedCharge, 2> charges = {NamedCharge{"orders", "1", 2}, NamedCharge{"daily", "1", 2}};
  EXPECT_EQ(ask({NamedCharges{charges, Order::in_order}}).retry_after, kNever);
  EXPECT_EQ(asker_.seen.at(0).limit, "daily");
  EXPECT_EQ(ask("orders", "1").remaining, 1) << "untouched until now";
}

TEST_F(PipelineTest, AQuotaDeniesUnderItsLimitsName) {
  EXPECT_TRUE(ask("daily", "1").allowed);
  const Collect::Seen second = ask("daily", "1");
  EXPECT_FALSE(second.allowed);
  EXPECT_EQ(second.limit, "daily");
  EXPECT_EQ(second.retry_after, 8h) << "the thousandth hour of 1970 is 16:00";
}

TEST_F(PipelineTest, ACallersOwnBucketNeverMeetsAConfiguredOne) {
  const Query own{OwnBucket{"orders:1", Limit::per_hour(1)}};
  EXPECT_TRUE(ask(own).allowed);
  EXPECT_FALSE(ask(own).allowed);
  EXPECT_EQ(asker_.seen.at(1).bucket, "*:orders:1");
  EXPECT_TRUE(ask("orders", "1").allowed);
}

TEST_F(PipelineTest, BoundsTheKeyOfACallersOwnBucket) {
  const std::string longest(bounds::own_key_bytes_max, 'k');
  EXPECT_TRUE(ask({OwnBucket{longest, Limit::per_hour(1)}}).allowed);
  const Collect::Seen longer = ask({OwnBucket{longest + "k", Limit::per_hour(1)}});
  EXPECT_TRUE(longer.failed);
  EXPECT_EQ(longer.fault, Fault::too_large);
}

TEST_F(PipelineTest, AProbeChargesItsOwnBucketAndIsNotCounted) {
  const auto seen = ask({StoreProbe{}});
  EXPECT_TRUE(seen.allowed);
  EXPECT_EQ(seen.bucket, kProbeBucket);
  EXPECT_EQ(metrics_.requests.value(), 0u);
}

TEST_F(PipelineTest, CountsEveryDecisionByLimit) {
  for (int i = 0; i < 3; ++i) ask("orders", "1");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask("trial", "1").allowed);
  ask("orders", "1", Mode::peek);
  std::map<std::string, std::array<std::uint64_t, 3>> counted;
  metrics_.visit([&](const LimitCounters& limit) {
    counted[limit.limit] = {limit.allowed.value(), limit.denied.value(), limit.shadow_denied.value()};
  });
  EXPECT_EQ(counted["orders"], (std::array<std::uint64_t, 3>{2, 1, 0}));
  for (int i = 0; i < 2; ++i) ask("daily", "1");
  metrics_.visit([&](const LimitCounters& limit) {
    counted[limit.limit] = {limit.allowed.value(), limit.denied.value(), limit.shadow_denied.value()};
  });
  EXPECT_EQ(counted["daily"], (std::array<std::uint64_t, 3>{1, 1, 0})) << "rate and quota are one answer";
  EXPECT_EQ(counted["trial"], (std::array<std::uint64_t, 3>{1, 0, 2}));
}

TEST_F(PipelineTest, AnAskerThatIsGoneIsNotAnswered) {
  const std::array<NamedCharge, 1> charges = {NamedCharge{"orders", "1", 1}};
  const Query query{NamedCharges{charges}};
  pipeline_.ask(0, query, asker_, clock_.now());
  pipeline_.forget(asker_);
  pipeline_.flush(clock_.now());
  EXPECT_TRUE(asker_.seen.empty());
  EXPECT_TRUE(ask("orders", "1").allowed);
  EXPECT_FALSE(ask("orders", "1").allowed) << "the charge stands";
}

TEST_F(PipelineTest, AReloadAppliesToTheNextQuestionAndKeepsBuckets) {
  EXPECT_TRUE(ask("orders", "1").allowed);
  EXPECT_TRUE(ask("orders", "1").allowed);
  configuration_.publish(load("limits: {orders: {burst: 3, count: 2, period: 1h}}"));
  EXPECT_TRUE(ask("orders", "1").allowed);
  EXPECT_FALSE(ask("orders", "1").allowed);
}

// A store elsewhere that would rather have few questions soon.
struct FarStore final : Store {
  std::vector<std::size_t> batches;

  void charge(std::span<const Question> batch, Now, Answers& answers) override {
    batches.push_back(batch.size());
    for (const Question& question : batch) answers.answer(question.ticket, Verdict{});
  }
  std::size_t batch_max() const noexcept override { return 2; }
};

TEST_F(PipelineTest, AStoreElsewhereBeginsBeforeTheTurnIsGathered) {
  FarStore far;
  Pipeline pipeline(configuration_, keeper_.known(), far, metrics_, clock_);
  pipeline.refresh();
  const Query query{OwnBucket{"somebody", Limit::per_second(1)}};
  for (std::uint64_t i = 0; i < 5; ++i) pipeline.ask(i, query, asker_, clock_.now());
  EXPECT_EQ(far.batches, (std::vector<std::size_t>{2, 2}));
  pipeline.flush(clock_.now());
  EXPECT_EQ(far.batches, (std::vector<std::size_t>{2, 2, 1}));
  EXPECT_EQ(asker_.seen.size(), 5u);
}

class ListedTest : public PipelineTest {
 protected:
  static constexpr const char* kListed = R"(
limits:
  per-ip: {key: ip, burst: 1, count: 1, period: 1h}
  orders: {burst: 1, count: 1, period: 1h}
access:
  allow: [{ip: 10.1.0.0/16}, {limit: orders, id: vip}]
  deny: [{ip: 10.1.2.0/24, expires: "1970-02-12T00:00:00Z"}]
)";
  ListedTest() { configuration_.publish(load(kListed)); }

  std::array<std::uint64_t, 4> counted(const std::string& name) {
    std::array<std::uint64_t, 4> out{};
    metrics_.visit([&](const LimitCounters& limit) {
      if (limit.limit != name) return;
      out = {limit.allowed.value(), limit.denied.value(), limit.allow_listed.value(), limit.deny_listed.value()};
    });
    return out;
  }
  static Adjustment adjustment(std::string id, Count burst, Wall expires) {
    Adjustment one;
    one.limit = "orders";
    one.id = std::move(id);
    one.burst = burst;
    one.expires = expires;
    return one;
  }
};

TEST_F(ListedTest, TheAllowListTakesNoToken) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ask("per-ip", "10.1.0.1").allowed);
  EXPECT_EQ(metrics_.allow_listed.value(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ask("orders", "vip").allowed);
  EXPECT_EQ(metrics_.allow_listed.value(), 10u) << "by the id of a limit too";
  EXPECT_EQ(counted("per-ip"), (std::array<std::uint64_t, 4>{0, 0, 5, 0}));
  EXPECT_EQ(table_->stats().buckets, 0u);
}

TEST_F(ListedTest, DenyBeatsAllowUntilItEnds) {
  const Collect::Seen seen = ask("per-ip", "10.1.2.3");
  EXPECT_FALSE(seen.allowed);
  EXPECT_EQ(seen.limit, "per-ip");
  EXPECT_EQ(seen.retry_after, 8h) << "the thousandth hour of 1970 is 16:00 on 11 February";
  EXPECT_EQ(counted("per-ip"), (std::array<std::uint64_t, 4>{0, 0, 0, 1}));
  clock_.advance(8h);
  EXPECT_TRUE(ask("per-ip", "10.1.2.3").allowed) << "on the allow list still";
}

TEST_F(ListedTest, ADenialByTheListChargesNothing) {
  const std::array<NamedCharge, 2> charges = {NamedCharge{"orders", "1", 1}, NamedCharge{"per-ip", "10.1.2.3", 1}};
  for (const Order order : {Order::together, Order::in_order}) {
    EXPECT_FALSE(ask({NamedCharges{charges, order}}).allowed);
  }
  EXPECT_TRUE(ask("orders", "1").allowed);
}

TEST_F(ListedTest, AClientOnTheAllowListPassesWithAllItsLimits) {
  const std::array<NamedCharge, 2> charges = {NamedCharge{"orders", "1", 1}, NamedCharge{"per-ip", "10.1.0.1", 1}};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask({NamedCharges{charges}}).allowed);
  EXPECT_EQ(counted("orders"), (std::array<std::uint64_t, 4>{0, 0, 3, 0}));
}

TEST_F(ListedTest, AnAdjustmentHoldsForTheNextQuestionAndTheBucketKeepsWhatItSpent) {
  EXPECT_TRUE(ask("orders", "7").allowed);
  EXPECT_FALSE(ask("orders", "7").allowed);
  ASSERT_TRUE(keeper_.adjust(adjustment("7", 3, clock_.now().wall + 1h), clock_.now().wall));
  EXPECT_TRUE(ask("orders", "7").allowed);
  EXPECT_TRUE(ask("orders", "7").allowed);
  EXPECT_FALSE(ask("orders", "7").allowed) << "one of the three was spent before";
  ask("orders", "7", Mode::reset);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask("orders", "7").allowed) << "it outlives a reset";
  clock_.advance(1h);
  ask("orders", "7", Mode::reset);
  EXPECT_TRUE(ask("orders", "7").allowed);
  EXPECT_FALSE(ask("orders", "7").allowed) << "it has ended, before anybody forgot it";
}

TEST_F(ListedTest, ARunTimeEntryHoldsForTheNextQuestion) {
  AccessEntry entry;
  entry.limit = "orders";
  entry.id = "9";
  ASSERT_TRUE(keeper_.add(entry, clock_.now().wall));
  EXPECT_FALSE(ask("orders", "9").allowed);
  EXPECT_EQ(ask("orders", "9").retry_after, kNever);
  ASSERT_TRUE(keeper_.remove(entry, clock_.now().wall));
  EXPECT_TRUE(ask("orders", "9").allowed);
}

}  // namespace
}  // namespace weir::pipeline_test
