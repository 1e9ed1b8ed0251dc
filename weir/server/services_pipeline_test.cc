// Questions about limits whose numbers a service decides.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "weir/base/clock.h"
#include "weir/config/parse.h"
#include "weir/external/fake_services_test.h"
#include "weir/known/known_keeper.h"
#include "weir/server/pipeline.h"
#include "weir/store/memory/memory_store.h"

namespace weir::services_pipeline_test {
namespace {

using namespace std::chrono_literals;
using external::reply_of;

constexpr const char* kServices = R"(
limits:
  plain: {burst: 2, count: 2, period: 1h}
  tenant: {key: "header:x-tenant", burst: 2, count: 2, period: 1h, quota: 1000/month}
  region: {key: "header:x-region", burst: 9, count: 9, period: 1h, failure_policy: passThrough,
           external: {enabled: true, http: {url: "http://limits/region"}, allowed_hosts: [Inside],
                      backend_required: true}}
  joined: {key: "descriptor:user", burst: 1, count: 1, period: 1h,
           external: {enabled: true, http: {url: "http://limits/user"}}}
overrides:
  tenant:vip: {burst: 7, count: 7, period: 1h}
  tenant:friend: {unlimited: true}
  tenant:bad: {blocked: true}
external: {enabled: true, limit: tenant, http: {url: "http://limits/tenant"}}
access:
  deny: [{limit: tenant, id: banned}, {limit: tenant, id: "t:evil"}]
  allow: [{limit: tenant, id: good}]
)";

struct Seen {
  std::string error = {};
  bool allowed = false;
  Count burst = 0;
  Count remaining = 0;
  std::string bucket = {};
  std::string id = {};
  Source source = Source::limit;
  std::string backend_url = {};
  std::size_t backend_hosts = 0;
  bool backend_unknown = false;
};

struct ServiceAsker final : Asker {
  std::map<std::uint64_t, Seen> seen;

  void answered(std::uint64_t token, const Result<Answer>& answer) override {
    Seen& one = seen[token];
    if (!answer) {
      one.error = answer.error().word.empty() ? answer.error().detail : std::string(answer.error().word);
      return;
    }
    one.allowed = answer->verdict.allowed;
    one.backend_url = answer->backend_url;
    one.backend_hosts = answer->backend_hosts.size();
    one.backend_unknown = answer->backend_unknown;
    if (answer->verdict.all.empty()) return;
    const LimitDecision& first = answer->verdict.all[0];
    const Decision& decision = first.half(Kind::bucket) != nullptr ? *first.half(Kind::bucket) : first.strictest();
    one.burst = decision.burst;
    one.remaining = decision.remaining;
    one.bucket = answer->labels[0].bucket();
    one.id = answer->labels[0].id;
    one.source = answer->labels[0].rate.source;
  }
};

class ServicesPipelineTest : public testing::Test {
 protected:
  static std::shared_ptr<const config::Loaded> load(const std::string& text) {
    config::Outcome outcome = config::parse(text, "test.yaml", {});
    if (const auto* const problems = std::get_if<config::Problems>(&outcome)) ADD_FAILURE() << problems->front().text();
    return std::make_shared<const config::Loaded>(std::get<config::Loaded>(outcome));
  }

  std::uint64_t begin(const Query& query) {
    pipeline_.refresh();
    pipeline_.ask(++next_, query, asker_, clock_.now());
    pipeline_.flush(clock_.now());
    return next_;
  }
  std::uint64_t begin(std::string_view limit, std::string_view id, Mode mode = Mode::spend) {
    const std::array<NamedCharge, 1> charges = {NamedCharge{limit, id, 1}};
    return begin(Query{NamedCharges{charges}, mode});
  }
  // One turn of the loop.
  void turn() {
    loop_.run();
    pipeline_.flush(clock_.now());
  }
  Seen of(std::uint64_t token) {
    const auto found = asker_.seen.find(token);
    return found == asker_.seen.end() ? Seen{.error = "no answer yet"} : found->second;
  }
  // Asks, lets the service answer, and returns what came of it.
  Seen ask(std::string_view limit, std::string_view id, const external::ServiceReply& reply) {
    const std::uint64_t token = begin(limit, id);
    if (!calls_.open.empty()) calls_.answer(reply);
    turn();
    return of(token);
  }

  ManualClock clock_{Time{10s}, Wall{std::chrono::hours{1000}}};
  std::unique_ptr<Table> table_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}, HashKey{1, 2}));
  MemoryStore store_{*table_, clock_};
  LoopMetrics metrics_;
  Published<config::Loaded> configuration_{load(kServices)};
  KnownKeeper keeper_{nullptr, {}, &clock_};
  external::FakeCalls calls_;
  external::FakeLoop loop_;
  external::Services services_{clock_, HashKey{1, 2}, nullptr, [](LogLevel, std::string_view) {}, 1000};
  external::LoopServices loop_services_{services_, std::make_unique<external::FakeCaller>(calls_), loop_.post(),
                                        metrics_.services};
  Pipeline pipeline_{configuration_, keeper_.known(), store_, metrics_, clock_, nullptr, nullptr, &loop_services_};
  ServiceAsker asker_;
  std::uint64_t next_ = 0;
};

TEST_F(ServicesPipelineTest, OnlyLimitsWithAServicePayForIt) {
  EXPECT_TRUE(of(begin("plain", "1")).allowed);
  EXPECT_EQ(calls_.made, 0u);
  EXPECT_EQ(pipeline_.wake_at(), Time::max());
}

TEST_F(ServicesPipelineTest, ParksTheQuestionAndUsesTheServicesNumbers) {
  const std::uint64_t first = begin("tenant", "acme");
  EXPECT_EQ(of(first).error, "no answer yet");
  ASSERT_EQ(calls_.open.size(), 1u);
  EXPECT_EQ(calls_.open.front().key, "acme");
  EXPECT_EQ(pipeline_.wake_at(), clock_.time() + 5s);
  calls_.answer(reply_of(20, 30, 1h));
  turn();
  EXPECT_TRUE(of(first).allowed);
  EXPECT_EQ(of(first).burst, 30);
  EXPECT_EQ(of(first).remaining, 29);
  EXPECT_EQ(of(first).source, Source::external);
  EXPECT_EQ(of(first).bucket, "tenant:acme");
  EXPECT_EQ(of(begin("tenant", "acme")).remaining, 28) << "the answer is at hand";
  EXPECT_EQ(calls_.made, 1u);
  EXPECT_EQ(metrics_.services.cache[0].value(), 1u);
  EXPECT_EQ(pipeline_.wake_at(), Time::max());
}

TEST_F(ServicesPipelineTest, WhoWaitsTooLongGetsTheLimitsOwnNumbers) {
  const std::uint64_t token = begin("tenant", "acme");
  clock_.advance(5s - 1ns);
  turn();
  EXPECT_EQ(of(token).error, "no answer yet");
  clock_.advance(1ns);
  turn();
  EXPECT_EQ(of(token).burst, 2);
  EXPECT_EQ(of(token).source, Source::limit);
  calls_.answer(reply_of(20, 30, 1h));
  turn();
  EXPECT_EQ(of(begin("tenant", "acme")).burst, 30) << "the late answer is kept";
}

TEST_F(ServicesPipelineTest, AFailedCallGivesTheStaleAnswerAndThenTheOwnNumbers) {
  EXPECT_EQ(ask("tenant", "acme", reply_of(20, 30, 1h)).burst, 30);
  clock_.advance(61s);
  const std::uint64_t stale = begin("tenant", "acme");
  calls_.fail();
  turn();
  EXPECT_EQ(of(stale).burst, 30);
  clock_.advance(5min);
  const std::uint64_t own = begin("tenant", "acme");
  calls_.fail();
  turn();
  EXPECT_EQ(of(own).burst, 2);
}

TEST_F(ServicesPipelineTest, AnAskerThatIsGoneCancelsNobody) {
  auto leaver = std::make_unique<ServiceAsker>();
  const std::array<NamedCharge, 1> charges = {NamedCharge{"tenant", "acme", 1}};
  pipeline_.ask(1000, {NamedCharges{charges}, Mode::spend}, *leaver, clock_.now());
  const std::uint64_t stays = begin("tenant", "acme");
  pipeline_.forget(*leaver);
  leaver.reset();
  EXPECT_EQ(services_.gauges().waiting, 1u);
  calls_.answer(reply_of(20, 30, 1h));
  turn();
  EXPECT_EQ(of(stays).remaining, 29) << "who left was not charged";
  EXPECT_EQ(calls_.made, 1u);
}

TEST_F(ServicesPipelineTest, ARefundAndAResetUseWhatIsKnown) {
  EXPECT_EQ(of(begin("tenant", "acme", Mode::refund)).burst, 2);
  (void)begin("tenant", "acme", Mode::reset);
  EXPECT_EQ(calls_.made, 0u);
  EXPECT_EQ(ask("tenant", "acme", reply_of(20, 30, 1h)).remaining, 29);
  EXPECT_EQ(of(begin("tenant", "acme", Mode::refund)).remaining, 30);
}

TEST_F(ServicesPipelineTest, APeekAsksLikeACheck) {
  const std::uint64_t token = begin("tenant", "acme", Mode::peek);
  ASSERT_EQ(calls_.open.size(), 1u);
  calls_.answer(reply_of(20, 30, 1h));
  turn();
  EXPECT_EQ(of(token).remaining, 30);
}

TEST_F(ServicesPipelineTest, TwoIdsOfOneTenantShareABucket) {
  external::ServiceReply reply = reply_of(20, 30, 1h);
  reply.answer.tenant_key = "acme";
  const Seen one = ask("tenant", "user-1", reply);
  EXPECT_EQ(one.bucket, "tenant:t:acme");
  EXPECT_EQ(one.id, "t:acme");
  EXPECT_EQ(ask("tenant", "user-2", reply).remaining, 28);
  EXPECT_EQ(calls_.made, 2u);
  (void)begin("tenant", "t:acme", Mode::reset);
  EXPECT_EQ(of(begin("tenant", "user-1")).remaining, 29);
}

TEST_F(ServicesPipelineTest, NoCallerNamesATenant) {
  EXPECT_EQ(of(begin("tenant", "t:acme")).error, "bad_id");
  EXPECT_EQ(of(begin("tenant", "t:acme", Mode::refund)).error, "bad_id");
  EXPECT_EQ(of(begin("tenant", "t:a b")).error, "bad_id");
  EXPECT_TRUE(of(begin("plain", "t:acme")).allowed) << "a limit without a service has no tenants";
}

TEST_F(ServicesPipelineTest, ListsDecideBeforeTheServiceIsAsked) {
  EXPECT_FALSE(of(begin("tenant", "banned")).allowed);
  EXPECT_TRUE(of(begin("tenant", "good")).allowed);
  EXPECT_FALSE(of(begin("tenant", "bad")).allowed) << "an override blocks it";
  EXPECT_EQ(calls_.made, 0u);
  external::ServiceReply reply = reply_of(20, 30, 1h);
  reply.answer.tenant_key = "evil";
  EXPECT_FALSE(ask("tenant", "innocent", reply).allowed) << "entries match the tenant too";
}

TEST_F(ServicesPipelineTest, TheAnswerIsStrongerThanAnOverrideAndWeakerThanUnlimitedAndAnAdjustment) {
  EXPECT_EQ(ask("tenant", "vip", reply_of(20, 30, 1h)).burst, 30);
  EXPECT_EQ(ask("tenant", "friend", reply_of(20, 30, 1h)).burst, kUnbounded);
  external::ServiceReply reply = reply_of(20, 30, 1h);
  reply.answer.tenant_key = "acme";
  Adjustment adjustment;
  adjustment.limit = "tenant";
  adjustment.id = "t:acme";
  adjustment.burst = 99;
  adjustment.expires = clock_.now().wall + 1h;
  keeper_.adjust(adjustment, clock_.now().wall, [](const Result<bool>& done) { EXPECT_TRUE(done); });
  const Seen adjusted = ask("tenant", "user-1", reply);
  EXPECT_EQ(adjusted.burst, 99);
  EXPECT_EQ(adjusted.source, Source::adjustment);
}

TEST_F(ServicesPipelineTest, AverageZeroIsUnlimitedAndStillNamesABackend) {
  const std::array<Attribute, 2> attributes = {Attribute{"header:x-region", "eu"}, Attribute{"path", "/a?b=c"}};
  const std::uint64_t token = begin(Query{RequestFacts{.attributes = attributes, .wants_backend = true}});
  ASSERT_EQ(calls_.open.size(), 1u);
  EXPECT_EQ(calls_.open.front().question.path, "/a");
  ASSERT_EQ(calls_.open.front().question.headers.size(), 1u);
  EXPECT_EQ(calls_.open.front().question.headers.front().first, "X-Region");
  external::ServiceReply reply = reply_of(0, 0);
  reply.answer.backend_url = "http://inside:3000";
  calls_.answer(reply);
  turn();
  EXPECT_TRUE(of(token).allowed);
  EXPECT_EQ(of(token).burst, kUnbounded);
  EXPECT_EQ(of(token).backend_url, "http://inside:3000");
  EXPECT_EQ(of(token).backend_hosts, 1u);
  EXPECT_FALSE(of(token).backend_unknown);
}

TEST_F(ServicesPipelineTest, ARequiredBackendThatNobodyNamesIsUnknown) {
  const std::array<Attribute, 1> attributes = {Attribute{"header:x-region", "eu"}};
  const Query query{RequestFacts{.attributes = attributes, .wants_backend = true}};
  const std::uint64_t failed = begin(query);
  calls_.fail();
  turn();
  EXPECT_TRUE(of(failed).backend_unknown);
  const std::uint64_t silent = begin(query);
  calls_.answer(reply_of(5, 5));
  turn();
  EXPECT_TRUE(of(silent).backend_unknown);
  const Query nobody{RequestFacts{.attributes = {}, .wants_backend = true}};
  EXPECT_TRUE(of(begin(nobody)).backend_unknown) << "without its key the limit does not apply, but no backend is known";
}

TEST_F(ServicesPipelineTest, ARequestWaitsForAllItsServices) {
  const std::array<Attribute, 2> attributes = {Attribute{"header:x-tenant", "acme"},
                                               Attribute{"header:x-region", "eu"}};
  const std::uint64_t token = begin(Query{RequestFacts{.attributes = attributes, .wants_backend = true}});
  ASSERT_EQ(calls_.open.size(), 2u);
  external::ServiceReply first = reply_of(20, 30, 1h);
  first.answer.backend_url = "http://first";
  external::ServiceReply second = reply_of(3, 4, 1h);
  second.answer.backend_url = "http://second";
  calls_.answer(first);
  turn();
  EXPECT_EQ(of(token).error, "no answer yet");
  calls_.answer(second);
  turn();
  EXPECT_EQ(of(token).burst, 30);
  EXPECT_EQ(of(token).backend_url, "http://first") << "the first limit that names a backend decides";
}

TEST_F(ServicesPipelineTest, AnAnswerAtHandCountsWhileAnotherIsAwaited) {
  external::ServiceReply first = reply_of(20, 30, 1h);
  first.answer.backend_url = "http://first";
  first.answer.tenant_key = "corp";
  EXPECT_EQ(ask("tenant", "acme", first).remaining, 29);
  const std::array<Attribute, 2> attributes = {Attribute{"header:x-tenant", "acme"},
                                               Attribute{"header:x-region", "eu"}};
  const Query query{RequestFacts{.attributes = attributes, .wants_backend = true}};
  const std::uint64_t waited = begin(query);
  ASSERT_EQ(calls_.open.size(), 1u);
  calls_.answer(reply_of(3, 40, 1h), 0s, false);
  turn();
  const std::uint64_t given_up = begin(query);
  clock_.advance(5s);
  turn();
  Count remaining = 28;
  for (const std::uint64_t token : {waited, given_up}) {
    EXPECT_EQ(of(token).bucket, "tenant:t:corp");
    EXPECT_EQ(of(token).burst, 30);
    EXPECT_EQ(of(token).remaining, remaining--);
    EXPECT_EQ(of(token).backend_url, "http://first");
  }
  EXPECT_EQ(metrics_.services.cache[0].value(), 2u) << "each was found once";
}

TEST_F(ServicesPipelineTest, DescriptorsAskTooWithTheKeyAlone) {
  const std::array<Attribute, 1> entries = {Attribute{"user", "u1"}};
  const std::array<Descriptor, 1> list = {Descriptor{.entries = entries}};
  const std::uint64_t token = begin(Query{Descriptors{"any", list}});
  ASSERT_EQ(calls_.open.size(), 1u);
  EXPECT_EQ(calls_.open.front().key, "u1");
  EXPECT_TRUE(calls_.open.front().question.headers.empty());
  calls_.answer(reply_of(20, 30, 1h));
  turn();
  EXPECT_EQ(of(token).burst, 30);
}

TEST_F(ServicesPipelineTest, AQuestionKeepsThePolicyItWasAskedUnder) {
  const std::uint64_t token = begin("tenant", "acme");
  configuration_.publish(load("limits: {tenant: {burst: 1, count: 1, period: 1h}}"), clock_.time());
  pipeline_.refresh();
  calls_.answer(reply_of(20, 30, 1h));
  turn();
  EXPECT_EQ(of(token).burst, 30);
  EXPECT_EQ(of(begin("tenant", "acme")).burst, 1);
}

}  // namespace
}  // namespace weir::services_pipeline_test
