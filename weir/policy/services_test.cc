// What a service's answer changes in the charges of a query.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "weir/config/parse.h"
#include "weir/policy/policy.h"

namespace weir::policy_services_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTenants = R"(
failure_policy: failClosed
failure_code: 429
hash_key: secret
limits:
  tenant: {rate: 100/s, burst: 100, lease: {tokens: 10, servers: 2}, tiers: {pro: {rate: 500/s, burst: 500}}}
  hidden: {rate: 1/s, hashed: true, external: {enabled: true, http: {url: "http://limits"}}}
  routed: {key: "header:x-user", rate: 1/s, per_route: true, external: {enabled: true, http: {url: "http://limits"}}}
external: {enabled: true, limit: tenant, http: {url: "http://limits"}}
routes:
  - {name: front, match: {path: "/**"}, limits: [routed]}
)";

class AnswersOfTest final : public ServiceAnswers {
 public:
  Found find(const NamedLimit& limit, std::string_view id, Time) const override {
    asked = limit.name + ":" + std::string(id);
    const auto found = answers.find(asked);
    return found == answers.end() ? Found{nullptr, true} : Found{found->second, false};
  }
  ServiceAnswer& add(const std::string& name) {
    const auto answer = std::make_shared<ServiceAnswer>();
    answer->numbers = *Limit::make(5, 1s, 8);
    answer->since = Time{77s};
    answers[name] = answer;
    return *answer;
  }

  std::map<std::string, std::shared_ptr<ServiceAnswer>> answers;
  mutable std::string asked;
};

class PolicyServicesTest : public testing::Test {
 protected:
  PolicyServicesTest() {
    config::Outcome outcome = config::parse(kTenants, "test.yaml", {});
    if (const auto* const problems = std::get_if<config::Problems>(&outcome)) ADD_FAILURE() << problems->front().text();
    policy_ = std::get<config::Loaded>(outcome).policy;
  }
  Result<void> resolve(std::string_view limit, std::string_view id, std::string_view tier = {}) {
    const std::array<NamedCharge, 1> charges = {NamedCharge{limit, id, 1, tier}};
    return resolve(Query{NamedCharges{charges}, Mode::spend});
  }
  Result<void> resolve(const Query& query) {
    return policy_->resolve(query, Known(), {Time{100s}, Wall{100s}}, out_, Time{50s}, &answers_);
  }
  const Charge& charge() { return out_.charges().front(); }

  std::shared_ptr<const Policy> policy_;
  AnswersOfTest answers_;
  Resolved out_;
};

TEST_F(PolicyServicesTest, NamesWhatItLacks) {
  ASSERT_TRUE(resolve("tenant", "acme"));
  ASSERT_EQ(out_.lookups().size(), 1u);
  EXPECT_EQ(out_.lookups().front().limit->name, "tenant");
  EXPECT_EQ(out_.lookups().front().id, "acme");
}

TEST_F(PolicyServicesTest, AnAnswerGivesNumbersAndWhenTheyCame) {
  answers_.add("tenant:acme");
  ASSERT_TRUE(resolve("tenant", "acme"));
  EXPECT_TRUE(out_.lookups().empty());
  EXPECT_EQ(charge().rate->limit.burst(), 8);
  EXPECT_EQ(charge().rate->since, Time{77s});
  EXPECT_EQ(charge().rate->source, Source::external);
  EXPECT_FALSE(charge().rate->has_lease()) << "2 leases of 10 tokens do not fit into a burst of 8";
  EXPECT_EQ(charge().on_failure, FailurePolicy::fail_closed);
  EXPECT_EQ(charge().failure_code, 429);
}

TEST_F(PolicyServicesTest, ATenantHasItsOwnFailurePolicyAndCode) {
  ServiceAnswer& answer = answers_.add("tenant:a");
  answer.failure_policy = FailurePolicy::pass_through;
  answers_.add("tenant:b").failure_code = 503;
  ASSERT_TRUE(resolve("tenant", "a"));
  EXPECT_EQ(charge().on_failure, FailurePolicy::pass_through);
  ASSERT_TRUE(resolve("tenant", "b"));
  EXPECT_EQ(charge().on_failure, FailurePolicy::fail_closed);
  EXPECT_EQ(charge().failure_code, 503);
}

TEST_F(PolicyServicesTest, TheAnswersBucketIsTheSameForEveryTier) {
  answers_.add("tenant:acme");
  ASSERT_TRUE(resolve("tenant", "acme", "pro"));
  EXPECT_EQ(charge().rate->key, "tenant:acme");
  EXPECT_EQ(charge().rate->limit.burst(), 8);
}

TEST_F(PolicyServicesTest, TheServiceSeesTheHashOfAHashedIdAndATenantIsHashedToo) {
  ASSERT_TRUE(resolve("hidden", "alice"));
  const std::string id(out_.lookups().front().id);
  EXPECT_EQ(id.size(), 64u);
  answers_.add("hidden:" + id).tenant_key = "acme";
  ASSERT_TRUE(resolve("hidden", "alice"));
  const std::string tenant(out_.parts().front().id);
  EXPECT_EQ(tenant, *policy_->bucket_id("hidden", "t:acme"));
  EXPECT_EQ(tenant.size(), 64u);
  EXPECT_NE(tenant, id);
}

TEST_F(PolicyServicesTest, ATenantHasABucketPerRouteIfItsLimitHas) {
  const std::array<Attribute, 2> attributes = {Attribute{"header:x-user", "u:1"}, Attribute{"path", "/"}};
  const Query query{RequestFacts{.attributes = attributes}};
  answers_.add("routed:u%3A1").tenant_key = "acme";
  ASSERT_TRUE(resolve(query));
  EXPECT_EQ(answers_.asked, "routed:u%3A1") << "the answer is for the id on all routes";
  EXPECT_EQ(charge().rate->key, "routed@front:t:acme");
}

TEST_F(PolicyServicesTest, WithoutAnAnswerTheOwnNumbersMayHaveJustComeBack) {
  class Nothing final : public ServiceAnswers {
    Found find(const NamedLimit&, std::string_view, Time) const override { return {}; }
  } nothing;
  const std::array<NamedCharge, 1> charges = {NamedCharge{"tenant", "acme"}};
  const Query query{NamedCharges{charges}, Mode::spend};
  ASSERT_TRUE(policy_->resolve(query, Known(), {Time{100s}, Wall{100s}}, out_, Time{50s}, &nothing));
  EXPECT_TRUE(out_.lookups().empty());
  EXPECT_EQ(charge().rate->since, Time::max());
  EXPECT_EQ(charge().rate->limit.burst(), 100);
}

}  // namespace
}  // namespace weir::policy_services_test
