// Tiers: where they come from, whose numbers apply, and which bucket is charged.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/config/describe.h"
#include "weir/config/diff.h"
#include "weir/config/parse.h"
#include "weir/policy/policy.h"

namespace weir::tiers_test {
namespace {

using namespace std::chrono;

constexpr Wall kFriday{sys_days{year{2024} / 7 / 5} + 12h};

config::Outcome parsed(std::string_view yaml) {
  config::Options options;
  options.made_hash_key = "key";
  return config::parse(yaml, "t.yaml", options);
}

config::Loaded load(std::string_view yaml) {
  config::Outcome outcome = parsed(yaml);
  const auto* const problems = std::get_if<config::Problems>(&outcome);
  EXPECT_EQ(problems, nullptr) << text(*problems);
  return std::get<config::Loaded>(std::move(outcome));
}

std::shared_ptr<const Policy> make(std::string_view yaml) {
  return load(yaml).policy;
}

// Prints one line per charge with the source of its numbers, "a~pro:x 9 per 1s, burst 9 by tier", or the error.
std::string answer(const Policy& policy, const Query& query, const Known& known = {}) {
  Resolved out;
  if (const Result<void> done = policy.resolve(query, known, {Time{}, kFriday}, out); !done) {
    return done.error().detail;
  }
  std::string lines;
  for (const Part& part : out.parts()) {
    if (part.charge != kNoCharge) {
      const Charge& charge = out.charges()[part.charge];
      const auto by = [](Source source) { return " by " + std::string(print(source)) + "\n"; };
      if (const auto& rate = charge.rate) {
        lines += std::string(rate->key) + " " + config::print(rate->limit) + by(rate->source);
      }
      if (const auto& quota = charge.quota) {
        lines += std::string(quota->key) + " quota " + std::to_string(quota->quota.size) + by(quota->source);
      }
    }
    if (part.standing != Standing::charged) {
      lines += std::string(print(part.standing)) + " by " + std::string(print(part.source)) + "\n";
    }
    if (part.unknown_tier) lines += "unknown tier\n";
  }
  return lines;
}

std::string named(const Policy& policy, std::string_view limit, std::string_view id, std::string_view tier,
                  Mode mode = Mode::spend, const Known& known = {}) {
  const NamedCharge charge{limit, id, 1, tier};
  return answer(policy, {NamedCharges{{&charge, 1}}, mode}, known);
}

constexpr std::string_view kPolicy =
    "limits:\n"
    "  a:\n"
    "    rate: 5/s\n"
    "    number: 6\n"
    "    schedule: [{days: fri, count: 6}]\n"
    "    tiers: {pro: {rate: 9/s}, big: {burst: 50}, free: {unlimited: true}, idle: {average: 0}}\n"
    "  q: {rate: 5/s, quota: 10/day, tiers: {pro: {quota: 100/day}, fast: {rate: 9/s}, free: {unlimited: true}}}\n"
    "overrides:\n"
    "  a:own: {rate: 7/s}\n"
    "  a:vip: {tier: pro}\n"
    "  a:gone: {tier: free}\n"
    "  a:out: {blocked: true}\n"
    "  q:own: {quota: 3/day}\n";

TEST(Tiers, ATierHasItsOwnNumbersAndItsOwnBucket) {
  const auto policy = make(kPolicy);
  EXPECT_EQ(named(*policy, "a", "x", ""), "6:x 6 per 1s, burst 6 by schedule\n");
  EXPECT_EQ(named(*policy, "a", "x", "pro"), "6~pro:x 9 per 1s, burst 9 by tier\n") << "before the schedule";
  EXPECT_EQ(named(*policy, "a", "x", "big"), "6~big:x 5 per 1s, burst 50 by tier\n") << "the rest is the limit's";
  EXPECT_EQ(named(*policy, "a", "x", "free"), "unlimited by tier\n");
  EXPECT_EQ(named(*policy, "a", "x", "idle"), "unlimited by tier\n");
  EXPECT_EQ(named(*policy, "a", "x", "pro", Mode::peek), "6~pro:x 9 per 1s, burst 9 by tier\n");
  EXPECT_EQ(named(*policy, "a", "x", "pro", Mode::refund), "6~pro:x 9 per 1s, burst 9 by tier\n");
}

TEST(Tiers, AnUnknownTierUsesTheLimitsOwnNumbersAndIsTold) {
  const auto policy = make(kPolicy);
  EXPECT_EQ(named(*policy, "a", "x", "gold"), "6:x 6 per 1s, burst 6 by schedule\nunknown tier\n");
}

TEST(Tiers, AllTiersShareTheQuotasCounter) {
  const auto policy = make(kPolicy);
  EXPECT_EQ(named(*policy, "q", "x", ""), "q:x 5 per 1s, burst 5 by limit\nq:x quota 10 by limit\n");
  EXPECT_EQ(named(*policy, "q", "x", "pro"), "q~pro:x 5 per 1s, burst 5 by tier\nq:x quota 100 by tier\n");
  EXPECT_EQ(named(*policy, "q", "x", "fast"), "q~fast:x 9 per 1s, burst 9 by tier\nq:x quota 10 by tier\n");
  EXPECT_EQ(named(*policy, "q", "x", "free"), "unlimited by tier\n");
}

TEST(Tiers, AnOverrideComesBeforeTheTierAndMayNameOne) {
  const auto policy = make(kPolicy);
  EXPECT_EQ(named(*policy, "a", "own", "pro"), "6:own 7 per 1s, burst 7 by override\n") << "one bucket for all tiers";
  EXPECT_EQ(named(*policy, "a", "vip", ""), "6~pro:vip 9 per 1s, burst 9 by tier\n");
  EXPECT_EQ(named(*policy, "a", "vip", "big"), "6~pro:vip 9 per 1s, burst 9 by tier\n");
  EXPECT_EQ(named(*policy, "a", "gone", "pro"), "unlimited by tier\n");
  EXPECT_EQ(named(*policy, "a", "out", "free"), "blocked by override\n");
  EXPECT_EQ(named(*policy, "q", "own", "fast"), "q~fast:own 9 per 1s, burst 9 by tier\nq:own quota 3 by override\n");
}

TEST(Tiers, AnAdjustmentComesBeforeTheTierAndKeepsItsBucket) {
  const auto policy = make(kPolicy);
  Adjustment adjustment;
  adjustment.limit = "a";
  adjustment.id = "x";
  adjustment.burst = 2;
  adjustment.expires = kFriday + 1h;
  Known::Parts parts;
  parts.adjustments = std::make_shared<const Adjustments>(std::vector<Adjustment>{adjustment});
  const Known known(parts);
  EXPECT_EQ(named(*policy, "a", "x", "pro", Mode::spend, known), "6~pro:x 9 per 1s, burst 2 by adjustment\n");
  EXPECT_EQ(named(*policy, "a", "x", "", Mode::spend, known), "6:x 6 per 1s, burst 2 by adjustment\n");
}

// The order of spec/1 for random policies: adjustment, override, tier, schedule, limit.
TEST(Tiers, NumbersComeFromTheFirstThatHasThemInRandomPolicies) {
  std::mt19937 random(14);  // NOLINT: the same every time
  for (int round = 0; round < 200; ++round) {
    const unsigned has = static_cast<unsigned>(random());
    const bool scheduled = has & 1u, tiered = has & 2u, overridden = has & 4u, adjusted = has & 8u,
               unlimited = has & 16u;
    const bool blocked = (has & 96u) == 96u;
    std::string yaml = "limits: {a: {rate: 1/s, tiers: {pro: ";
    yaml += unlimited ? "{unlimited: true}" : "{rate: 3/s}";
    yaml += std::string("}") + (scheduled ? ", schedule: [{count: 2}]" : "") + "}}\n";
    if (overridden) yaml += std::string("overrides: {a:x: ") + (blocked ? "{blocked: true}" : "{rate: 4/s}") + "}\n";
    const auto policy = make(yaml);
    Known::Parts parts;
    if (adjusted) {
      Adjustment adjustment;
      adjustment.limit = "a";
      adjustment.id = "x";
      adjustment.count = 5;
      adjustment.period = 1s;
      adjustment.burst = 5;
      adjustment.expires = kFriday + 1h;
      parts.adjustments = std::make_shared<const Adjustments>(std::vector<Adjustment>{adjustment});
    }
    std::string expected = scheduled ? "2 per 1s, burst 2 by schedule\n" : "1 per 1s, burst 1 by limit\n";
    if (tiered) expected = unlimited ? "unlimited by tier\n" : "3 per 1s, burst 3 by tier\n";
    if (overridden) expected = blocked ? "blocked by override\n" : "4 per 1s, burst 4 by override\n";
    if (adjusted) expected = "5 per 1s, burst 5 by adjustment\n";
    const bool tier_bucket = tiered && (!overridden || blocked);
    const bool charged = expected.starts_with("unlimited") || expected.starts_with("blocked");
    if (!charged) expected = (tier_bucket ? "a~pro:x " : "a:x ") + expected;
    EXPECT_EQ(named(*policy, "a", "x", tiered ? "pro" : "", Mode::spend, Known(parts)), expected) << yaml;
  }
}

TEST(Tiers, AResetCoversTheBucketsOfAllTiersWhateverTierIsNamed) {
  const auto policy = make(kPolicy);
  const NamedCharge charge{"q", "x", 1, "pro"};
  Resolved out;
  ASSERT_TRUE(policy->resolve({NamedCharges{{&charge, 1}}, Mode::reset}, {}, {Time{}, kFriday}, out));
  std::vector<std::string> keys;
  for (const Charge& one : out.charges()) {
    if (one.rate) keys.push_back("b:" + std::string(one.rate->key));
    if (one.quota) keys.push_back("w:" + std::string(one.quota->key));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"b:q:x", "b:q~fast:x", "b:q~free:x", "b:q~pro:x", "w:q:x"}));
}

std::string with_tiers(std::size_t count) {
  std::string yaml = "limits: {a: {rate: 5/s, quota: 9/day, tiers: {";
  for (std::size_t i = 0; i < count; ++i) yaml += (i == 0 ? "t" : ", t") + std::to_string(i) + ": {burst: 2}";
  return yaml + "}}}";
}

TEST(Tiers, ALimitHasAsManyTiersAsTheBoundAndNotOneMore) {
  const auto policy = make(with_tiers(bounds::tiers_max));
  EXPECT_NE(named(*policy, "a", "x", "", Mode::reset), "") << "and all of them fit one reset";
  const config::Outcome one_more = parsed(with_tiers(bounds::tiers_max + 1));
  ASSERT_TRUE(std::holds_alternative<config::Problems>(one_more));
  EXPECT_EQ(std::get<config::Problems>(one_more).front().sentence, "tiers: at most 14 are possible");
  const std::array<NamedCharge, 2> both{NamedCharge{"a", "x"}, NamedCharge{"a", "y"}};
  EXPECT_EQ(answer(*policy, {NamedCharges{both}, Mode::reset}),
            "more than 16 limits and tiers would be charged at once; ask for fewer");
}

TEST(Tiers, AKeyWithATierHoldsAtItsBoundAndNotOnePastIt) {
  const auto policy = make("limits: {a: {key: header:h, rate: 1/s, id: text, tiers: {pro: {rate: 2/s}}}}");
  const std::string longest(bounds::id_bytes_max, 'x');
  EXPECT_EQ(named(*policy, "a", longest, "pro"), "a~pro:" + longest + " 2 per 1s, burst 2 by tier\n");
}

std::string requested(const Policy& policy, std::string_view caller, std::vector<Attribute> attributes) {
  attributes.push_back({"header:x-tenant", "acme"});
  return answer(policy, {RequestFacts{attributes, caller}});
}

TEST(Tiers, ARequestsHeaderCountsOnlyFromATrustedProxyAndOnlyOnce) {
  const auto policy = make(
      "limits: {t: {key: header:x-tenant, rate: 1/s, tier: header:X-Plan, tiers: {pro: {rate: 2/s}}}}\n"
      "access: {trusted_proxies: [10.0.0.0/8]}");
  const std::string own = "t:acme 1 per 1s, burst 1 by limit\n";
  const std::string pro = "t~pro:acme 2 per 1s, burst 2 by tier\n";
  EXPECT_EQ(requested(*policy, "10.0.0.1", {{"header:x-plan", " pro "}}), pro);
  EXPECT_EQ(requested(*policy, "192.0.2.1", {{"header:x-plan", "pro"}}), own) << "a stranger's header";
  EXPECT_EQ(requested(*policy, "", {{"header:x-plan", "pro"}}), own) << "nobody knows whose";
  EXPECT_EQ(requested(*policy, "192.0.2.1", {{"header:x-plan", "pro"}, {"header:x-forwarded-for", "10.0.0.1"}}), own);
  EXPECT_EQ(requested(*policy, "10.0.0.1", {{"header:x-plan", "pro"}, {"header:x-plan", "pro"}}), own) << "two lines";
  EXPECT_EQ(requested(*policy, "10.0.0.1", {}), own);
  EXPECT_EQ(requested(*policy, "10.0.0.1", {{"header:x-plan", "gold"}}), own + "unknown tier\n");
}

TEST(Tiers, ADescriptorsTierCountsFromAnyCaller) {
  const auto policy =
      make("limits: {t: {key: header:x-tenant, rate: 1/s, tier: descriptor:plan, tiers: {pro: {rate: 2/s}}}}");
  EXPECT_EQ(requested(*policy, "", {{"descriptor:plan", "pro"}}), "t~pro:acme 2 per 1s, burst 2 by tier\n");
}

TEST(Tiers, ARoutesBucketAndATiersGoTogether) {
  const auto policy = make(
      "limits: {t: {key: header:x-tenant, rate: 1/s, per_route: true, hashed: true, tier: descriptor:plan,\n"
      "  tiers: {pro: {rate: 2/s}}}}\n"
      "routes: [{name: r, match: {path: '/**'}}]");
  const std::string line = requested(*policy, "", {{"descriptor:plan", "pro"}});
  EXPECT_TRUE(line.starts_with("t@r~pro:")) << line;
}

TEST(Tiers, ATierByHeaderWithoutTrustedProxiesIsAWarning) {
  const config::Loaded loaded = load("limits: {a: {rate: 1/s, tier: header:x-plan, tiers: {pro: {burst: 2}}}}");
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_EQ(loaded.warnings[0],
            "limit \"a\": tier header:x-plan never counts, because access.trusted_proxies is empty");
}

TEST(Tiers, ADiffNamesTiersAndOverridesThatNameOne) {
  const auto before =
      load("limits: {a: {rate: 1/s, tiers: {x: {burst: 2}, pro: {burst: 3}}}}\noverrides: {a:1: {tier: x}}");
  const auto after =
      load("limits: {a: {rate: 1/s, tiers: {pro: {burst: 3}, x: {burst: 2}}}}\noverrides: {a:1: {tier: pro}}");
  std::string changes;
  for (const config::Change& change : config::diff(before, after)) changes += change.text() + "\n";
  EXPECT_EQ(changes,
            "changed limit a: 1 per 1s, burst 1; tiers x: 1 per 1s, burst 2; pro: 1 per 1s, burst 3; id text -> "
            "1 per 1s, burst 1; tiers pro: 1 per 1s, burst 3; x: 1 per 1s, burst 2; id text\n"
            "changed override a:1: tier x -> tier pro\n");
}

}  // namespace
}  // namespace weir::tiers_test
