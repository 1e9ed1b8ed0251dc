#include "weir/server/pipeline.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "weir/base/clock.h"
#include "weir/policy/parse.h"
#include "weir/store/memory/memory_store.h"

namespace weir {
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
)";

struct Collect final : Asker {
  struct Seen {
    bool failed = false;
    Fault fault = Fault::internal;
    bool allowed = false;
    std::string limit;
    std::string bucket;
    Count remaining = 0;
    std::string route;
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
    one.bucket = std::string(answer->labels[answer->verdict.strictest].bucket);
    one.remaining = answer->verdict.all[answer->verdict.strictest].remaining;
    one.route = std::string(answer->route);
    one.retry_after = answer->verdict.all[answer->verdict.strictest].retry_after;
  }
};

class PipelineTest : public testing::Test {
 protected:
  static std::shared_ptr<const Policy> load(const std::string& text) {
    auto outcome = policy::parse(text, "test.yaml", {});
    return std::get<policy::Loaded>(outcome).policy;
  }

  Collect::Seen ask(std::string_view limit, std::string_view id, Mode mode = Mode::spend) {
    const std::array<NamedCharge, 1> charges = {NamedCharge{limit, id, 1}};
    Query query;
    query.charges = charges;
    query.mode = mode;
    return ask(query);
  }
  Collect::Seen ask(const Query& query) {
    pipeline_.ask(next_, query, asker_, clock_.now());
    pipeline_.flush(clock_.now());
    return asker_.seen.at(next_++);
  }

  ManualClock clock_{Time{10s}, Wall{std::chrono::hours{1000}}};
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{1, 2}));
  MemoryStore store_{*table_, clock_};
  LoopMetrics metrics_;
  Pipeline pipeline_{load(kPolicy), store_, metrics_, clock_};
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

TEST_F(PipelineTest, AnUnknownLimitIsAnErrorAtOnce) {
  EXPECT_TRUE(ask("nope", "1").failed);
  EXPECT_EQ(asker_.seen.at(0).fault, Fault::unknown);
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

TEST_F(PipelineTest, ACostThatCanNeverPassTakesNothingFromThoseBeforeIt) {
  const std::array<NamedCharge, 2> charges = {NamedCharge{"orders", "1", 2}, NamedCharge{"daily", "1", 2}};
  Query query;
  query.charges = charges;
  query.order = Order::in_order;
  EXPECT_EQ(ask(query).retry_after, kNever);
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
  Query own;
  own.key = "orders:1";
  own.limit = Limit::per_hour(1);
  EXPECT_TRUE(ask(own).allowed);
  EXPECT_FALSE(ask(own).allowed);
  EXPECT_EQ(asker_.seen.at(1).bucket, "*:orders:1");
  EXPECT_TRUE(ask("orders", "1").allowed);
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
  Query query;
  query.charges = charges;
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
  pipeline_.use(load("limits: {orders: {burst: 3, count: 2, period: 1h}}"));
  EXPECT_TRUE(ask("orders", "1").allowed);
  EXPECT_FALSE(ask("orders", "1").allowed);
}

// Requests of a sign-in page against five kinds of bucket.
class SignIn : public PipelineTest {
 protected:
  void use(const std::string& policy) { pipeline_.use(load(policy)); }

  Collect::Seen ask_request(const std::vector<Attribute>& attributes) {
    Query query;
    query.attributes = attributes;
    return PipelineTest::ask(query);
  }
  // Who asks, by which session, mail address, address and token; an empty one is not sent.
  Collect::Seen sign_in(const std::string& session, const std::string& email, const std::string& ip,
                        const std::string& token) {
    const std::string cookies = "idx=" + session + "; access_token=" + token;
    return ask_request(
        {{"path", "/signin"}, {"method", "POST"}, {"ip", ip}, {"header:cookie", cookies}, {"form:email", email}});
  }
};

constexpr const char* kFive = R"(
limits:
  session: {key: cookie:idx, burst: 4, count: 1, period: 1h, per_route: true}
  email: {key: form:email, burst: 5, count: 1, period: 1h, per_route: true}
  per-ip: {key: ip, burst: 6, count: 1, period: 1h, per_route: true}
  token: {key: cookie:access_token, burst: 7, count: 1, period: 1h, per_route: true}
  everyone: {key: global, burst: 8, count: 1, period: 1h, per_route: true}
routes:
  - {name: signin, match: {path: /signin}, limits: [session, email, per-ip, token, everyone], charge: in-order}
)";

TEST_F(SignIn, EachBucketLimitsInItsTurn) {
  use(kFive);
  // Who changes what is counted first is stopped by the next: 4, 5, 6, 7 and 8 tokens.
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(sign_in("s1", "e1", "1.1.1.1", "t1").allowed);
  EXPECT_EQ(sign_in("s1", "e1", "1.1.1.1", "t1").limit, "session");
  EXPECT_TRUE(sign_in("s2", "e1", "1.1.1.1", "t1").allowed);
  EXPECT_EQ(sign_in("s2", "e1", "1.1.1.1", "t1").limit, "email");
  EXPECT_TRUE(sign_in("s3", "e2", "1.1.1.1", "t1").allowed);
  EXPECT_EQ(sign_in("s3", "e2", "1.1.1.1", "t1").limit, "per-ip");
  EXPECT_TRUE(sign_in("s4", "e3", "1.1.1.2", "t1").allowed);
  EXPECT_EQ(sign_in("s4", "e3", "1.1.1.2", "t1").limit, "token");
  EXPECT_TRUE(sign_in("s5", "e4", "1.1.1.3", "t2").allowed);
  EXPECT_EQ(sign_in("s5", "e4", "1.1.1.3", "t2").limit, "everyone");
  EXPECT_EQ(asker_.seen.rbegin()->second.bucket, "everyone@signin:global");
  EXPECT_EQ(asker_.seen.rbegin()->second.route, "signin");
}

TEST_F(SignIn, AClientStoppedByAnEarlierBucketLeavesTheLaterOnesUntouched) {
  use(kFive);
  for (int i = 0; i < 100; ++i) sign_in("s1", "e1", "1.1.1.1", "t1");
  // Four passed; whatever the other 96 wanted, everybody else finds four of eight.
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_TRUE(sign_in("a" + n, "a" + n, "2.2.2." + n, "a" + n).allowed);
  }
  EXPECT_EQ(sign_in("b", "b", "3.3.3.3", "b").limit, "everyone");
}

TEST_F(SignIn, TheExampleOfTwoBuckets) {
  use(R"(
limits:
  ip: {key: ip, capacity: 2, addTokenMs: 500}
  global: {key: global, capacity: 5, addTokenMs: 500}
routes: [{name: signin, match: {path: /signin}, limits: [ip, global], charge: in-order}]
)");
  const std::vector<Attribute> request = {{"path", "/signin"}, {"ip", "127.0.0.1"}};
  EXPECT_TRUE(ask_request(request).allowed);
  EXPECT_TRUE(ask_request(request).allowed);
  EXPECT_EQ(ask_request(request).limit, "ip");
  const std::array<NamedCharge, 1> look = {NamedCharge{"global", "global", 0}};
  Query query;
  query.charges = look;
  query.mode = Mode::peek;
  EXPECT_EQ(PipelineTest::ask(query).remaining, 3);
}

TEST_F(SignIn, AllAddressesOfOnePrefixAreOneClient) {
  use("limits: {per-ip: {key: ip, burst: 100, count: 1, period: 1h}}");
  int allowed = 0;
  for (unsigned i = 0; i < 1u << 16; ++i) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "2001:db8:0:1:%x:0:0:%x", i * 7919 % 65536, i);
    Query query;
    const std::array<Attribute, 1> request = {Attribute{"ip", text.data()}};
    query.attributes = request;
    allowed += PipelineTest::ask(query).allowed ? 1 : 0;
    asker_.seen.clear();
  }
  EXPECT_EQ(allowed, 100);
}

TEST_F(SignIn, AClientThatPollsFasterThanItMayStillGetsItsRate) {
  use("limits: {per-ip: {key: ip, burst: 5, count: 10, period: 1s}}");
  int allowed = 0;
  for (int i = 0; i < 60'000; ++i) {
    allowed += ask_request({{"ip", "1.2.3.4"}}).allowed ? 1 : 0;
    asker_.seen.clear();
    clock_.advance(1ms);
  }
  EXPECT_EQ(allowed, 5 + 599) << "a minute at ten a second, and the burst";
}

}  // namespace
}  // namespace weir
