// Requests through policy, pipeline and table: which buckets are charged, in which order, and which one answers.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "weir/base/clock.h"
#include "weir/config/parse.h"
#include "weir/known/known_keeper.h"
#include "weir/server/pipeline.h"
#include "weir/store/memory/memory_store.h"

namespace weir::requests_test {
namespace {

using namespace std::chrono_literals;

class RequestsTest : public testing::Test, private Asker {
 protected:
  struct Seen {
    bool allowed = false;
    Access access = Access::limited;
    std::string limit;
    std::string id;
    std::string bucket;
    std::string route;
    Count remaining = 0;
  };

  void use(const std::string& policy) {
    auto outcome = config::parse(policy, "test.yaml", {});
    configuration_.publish(std::make_shared<const config::Loaded>(std::get<config::Loaded>(outcome)));
  }
  Seen ask(const Query& query) {
    pipeline_.refresh();
    pipeline_.ask(0, query, *this, clock_.now());
    pipeline_.flush(clock_.now());
    return last_;
  }
  Seen ask_request(const std::vector<Attribute>& attributes) { return ask({RequestFacts{attributes}}); }
  // The client's session, email, address and token.
  Seen sign_in(const std::string& session, const std::string& email, const std::string& ip, const std::string& token) {
    const std::string cookies = "idx=" + session + "; access_token=" + token;
    return ask_request(
        {{"path", "/signin"}, {"method", "POST"}, {"ip", ip}, {"header:cookie", cookies}, {"form:email", email}});
  }

  ManualClock clock_{Time{10s}, Wall{std::chrono::hours{1000}}};
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{1, 2}));
  MemoryStore store_{*table_, clock_};
  LoopMetrics metrics_;
  Published<config::Loaded> configuration_{std::make_shared<const config::Loaded>()};
  KnownKeeper keeper_;
  Pipeline pipeline_{configuration_, keeper_.known(), store_, metrics_, clock_};
  Seen last_;

 private:
  void answered(std::uint64_t, const Result<Answer>& answer) override {
    last_ = {};
    ASSERT_TRUE(answer) << answer.error().detail;
    last_.allowed = answer->verdict.allowed;
    last_.access = answer->access;
    last_.route = std::string(answer->route);
    if (answer->verdict.all.empty()) return;
    const Label& label = answer->labels[answer->verdict.strictest];
    last_.limit = std::string(label.limit);
    last_.id = std::string(label.key) + " " + std::string(label.id);
    last_.bucket = std::string(label.bucket());
    last_.remaining = answer->verdict.speaker().remaining;
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

TEST_F(RequestsTest, EachBucketLimitsInOrder) {
  use(kFive);
  // A client that changes the first identifier is stopped by the next bucket: 4, 5, 6, 7 and 8 tokens.
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
  EXPECT_EQ(last_.bucket, "everyone@signin:global");
  EXPECT_EQ(last_.route, "signin");
}

TEST_F(RequestsTest, DenialByAnEarlierBucketDoesNotChargeLaterOnes) {
  use(kFive);
  for (int i = 0; i < 100; ++i) sign_in("s1", "e1", "1.1.1.1", "t1");
  // Four passed. The other 96 charged nothing: other clients still find four of eight tokens.
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_TRUE(sign_in("a" + n, "a" + n, "2.2.2." + n, "a" + n).allowed);
  }
  EXPECT_EQ(sign_in("b", "b", "3.3.3.3", "b").limit, "everyone");
}

TEST_F(RequestsTest, MatchesTheDocumentedExampleOfTwoBuckets) {
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
  EXPECT_EQ(ask({NamedCharges{look}, Mode::peek}).remaining, 3);
}

TEST_F(RequestsTest, CountsAllAddressesOfAPrefixAsOneClient) {
  use("limits: {per-ip: {key: ip, burst: 100, count: 1, period: 1h}}");
  int allowed = 0;
  for (unsigned i = 0; i < 1u << 16; ++i) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "2001:db8:0:1:%x:0:0:%x", i * 7919 % 65536, i);
    const std::array<Attribute, 1> request = {Attribute{"ip", text.data()}};
    allowed += ask({RequestFacts{request}}).allowed ? 1 : 0;
  }
  EXPECT_EQ(allowed, 100);
}

TEST_F(RequestsTest, ClientThatPollsTooFastStillGetsItsRate) {
  use("limits: {per-ip: {key: ip, burst: 5, count: 10, period: 1s}}");
  int allowed = 0;
  for (int i = 0; i < 60'000; ++i) {
    allowed += ask_request({{"ip", "1.2.3.4"}}).allowed ? 1 : 0;
    clock_.advance(1ms);
  }
  EXPECT_EQ(allowed, 5 + 599) << "a minute at ten a second, and the burst";
}

TEST_F(RequestsTest, ChecksAccessListsBeforeRoutes) {
  use(R"(
limits: {per-ip: {key: ip, burst: 1, count: 1, period: 1h}}
routes: [{name: health, match: {path: /healthz}, limits: none}, {name: rest, match: {}, limits: [per-ip]}]
access:
  allow: [{ip: 10.1.0.0/16}, {apikey: friend}]
  deny: [{ip: 10.1.2.3}, {apikey: stolen}]
)");
  const auto denied = [&](std::vector<Attribute> request) {
    const Seen seen = ask_request(request);
    return seen.allowed || seen.access != Access::deny_listed ? "no" : seen.id;
  };
  EXPECT_EQ(denied({{"ip", "10.1.2.3"}, {"path", "/healthz"}}), "ip 10.1.2.3");
  EXPECT_EQ(denied({{"ip", "1.1.1.1"}, {"header:x-api-key", "stolen"}}), "apikey stolen");
  EXPECT_EQ(denied({{"ip", "10.1.2.3"}, {"header:x-api-key", "friend"}}), "ip 10.1.2.3") << "deny beats allow";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ask_request({{"ip", "10.1.0.1"}}).allowed);
    EXPECT_TRUE(ask_request({{"ip", "1.1.1.1"}, {"header:authorization", "ApiKey friend"}}).allowed);
  }
  EXPECT_EQ(table_->stats().buckets, 0u) << "a client on the allow list takes no token";
  EXPECT_TRUE(ask_request({{"ip", "1.1.1.1"}}).allowed);
  EXPECT_FALSE(ask_request({{"ip", "1.1.1.1"}}).allowed);
}

}  // namespace
}  // namespace weir::requests_test
