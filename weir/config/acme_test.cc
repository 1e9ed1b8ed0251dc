// examples/acme: the files of a certificate authority load as they stand and give the buckets and numbers they promise.
#include <gtest/gtest.h>

#include "weir/algorithm/gcra.h"
#include "weir/config/describe.h"
#include "weir/config/parse.h"

namespace weir::config::acme_test {
namespace {

using namespace std::chrono_literals;

class Acme : public ::testing::Test {
 protected:
  Acme() : outcome_(load(WEIR_SOURCE_DIR "/examples/acme/weir.yaml", {})) {}

  const Policy& policy() {
    if (const Problems* problems = std::get_if<Problems>(&outcome_)) ADD_FAILURE() << text(*problems);
    return *std::get<Loaded>(outcome_).policy;
  }

  std::string bucket(std::string_view limit, std::string_view id) {
    const NamedCharge charge{limit, id};
    const Result<void> result = policy().resolve({NamedCharges{{&charge, 1}}}, Known(), {}, out_);
    if (!result) return result.error().detail;
    if (out_.charges().empty()) return "nothing";
    return std::string(out_.charges()[0].rate->key) + ": " + print(out_.charges()[0].rate->limit);
  }

  Outcome outcome_;
  Resolved out_;
};

TEST_F(Acme, BucketKeysCarryTheNumberOfTheLimit) {
  EXPECT_EQ(bucket("NewOrdersPerAccount", "12345678"), "6:12345678: 600 per 3h, burst 300");
}

TEST_F(Acme, DefaultsHoldForEverybodyElse) {
  EXPECT_EQ(bucket("NewOrdersPerAccount", "12345679"), "6:12345679: 300 per 3h, burst 300");
  EXPECT_EQ(bucket("NewRegistrationsPerIPAddress", "10.0.0.1"), "1:10.0.0.1: 20 per 1s, burst 20");
}

TEST_F(Acme, OverridesDoubleTheCountAndKeepTheBurst) {
  EXPECT_EQ(bucket("NewRegistrationsPerIPAddress", "10.0.0.2"), "1:10.0.0.2: 40 per 1s, burst 20");
}

TEST_F(Acme, AnySpellingOfAnIdFindsItsOverride) {
  EXPECT_EQ(bucket("NewRegistrationsPerIPAddress", "2001:db8::ff00:42:8329"),
            "1:2001:db8::ff00:42:8329: 40 per 1s, burst 20");
  EXPECT_EQ(bucket("NewRegistrationsPerIPv6Range", "2001:db8::/48"), "2:2001:db8::/48: 1000 per 3h, burst 1000");
  EXPECT_EQ(bucket("CertificatesPerDomainPerAccount", "12345678:EXAMPLE.com"),
            "4:12345678:example.com: 50 per 7d, burst 50");
  const std::string set = bucket("CertificatesPerFQDNSetPerAccount", "12345678:example.com,example.org");
  EXPECT_TRUE(set.starts_with("5:12345678:") && set.ends_with(": 5 per 7d, burst 5")) << set;
  EXPECT_EQ(set, bucket("CertificatesPerFQDNSetPerAccount", "12345678:EXAMPLE.org,example.com,example.org"));
}

TEST_F(Acme, ALimitWithoutDefaultsLimitsOnlyWhoHasAnOverride) {
  EXPECT_EQ(bucket("CertificatesPerDomainPerAccount", "12345678:example.org"), "nothing");
}

TEST_F(Acme, IdsAreHeldToTheirFormat) {
  EXPECT_EQ(bucket("NewOrdersPerAccount", "abc"),
            "limit \"NewOrdersPerAccount\": \"abc\" is not a regId: only decimal digits are allowed");
  EXPECT_NE(bucket("NewRegistrationsPerIPv6Range", "2001:db8::/64").find("/48"), std::string::npos);
}

TEST_F(Acme, TheWorkedExampleHoldsExactly) {
  EXPECT_EQ(bucket("NewFoosPerIPAddress", "172.23.45.22"), "3:172.23.45.22: 20 per 1s, burst 20");
  const Limit limit = out_.charges()[0].rate->limit;
  const Time start{1h};
  Step step = gcra::spend(limit, Time{}, 1, start);
  EXPECT_EQ(step.decision, (Decision{true, 20, 19, 0ns, 50ms}));
  step = gcra::spend(limit, step.tat, 1, start + 5ms);
  EXPECT_EQ(step.decision, (Decision{true, 20, 18, 0ns, 95ms}));
  for (int i = 0; i < 18; ++i) {
    step = gcra::spend(limit, step.tat, 1, start + 5ms + 44ms * (i + 1) / 18);
    EXPECT_TRUE(step.decision.allowed) << i;
  }
  step = gcra::spend(limit, step.tat, 1, start + 49ms);
  EXPECT_FALSE(step.decision.allowed);
  EXPECT_EQ(step.decision.retry_after, 1ms);
}

}  // namespace
}  // namespace weir::config::acme_test
