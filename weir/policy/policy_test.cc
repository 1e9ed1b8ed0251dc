#include "weir/policy/policy.h"

#include <gtest/gtest.h>

#include <array>

#include "weir/base/bounds.h"
#include "weir/config/describe.h"
#include "weir/config/parse.h"
#include "weir/identify/digest.h"

namespace weir::policy_test {
namespace {

using namespace std::chrono;

constexpr Wall kFriday{sys_days{year{2024} / 7 / 5} + 12h};

std::shared_ptr<const Policy> make(std::string_view yaml) {
  config::Options options;
  options.made_hash_key = "key";
  config::Outcome outcome = config::parse(yaml, "t.yaml", options);
  if (const auto* problems = std::get_if<config::Problems>(&outcome)) {
    ADD_FAILURE() << text(*problems);
    return std::make_shared<const Policy>(Policy::Parts{});
  }
  return std::get<config::Loaded>(outcome).policy;
}

struct Asked {
  std::vector<NamedCharge> charges;
  Order order = Order::together;
  Mode mode = Mode::spend;
  Wall wall = kFriday;
  Known known = {};
};

Result<void> resolve(const Policy& policy, const Asked& asked, Resolved& out) {
  const Query query{NamedCharges{asked.charges, asked.order}, asked.mode};
  return policy.resolve(query, asked.known, {Time{}, asked.wall}, out);
}

// Prints one line per bucket of each charge, "6:12345678 600 per 3h, burst 300 x1", or the error.
std::string charges(const Policy& policy, const Asked& asked) {
  Resolved out;
  if (const Result<void> result = resolve(policy, asked, out); !result) return result.error().detail;
  std::string lines = out.blocked() == nullptr ? "" : "blocked by " + out.blocked()->limit->name + "\n";
  for (const Charge& charge : out.charges()) {
    const std::string how = " x" + std::to_string(charge.cost) + (charge.shadow ? " shadow" : "") + "\n";
    if (charge.rate) lines += std::string(charge.rate->key) + " " + config::print(charge.rate->limit) + how;
    if (!charge.quota) continue;
    lines += std::string(charge.quota->key) + " quota " + std::to_string(charge.quota->quota.size) + how;
  }
  return lines;
}

std::string source(const Policy& policy, const Asked& asked) {
  Resolved out;
  if (const Result<void> result = resolve(policy, asked, out); !result) return result.error().detail;
  const Part& part = out.parts()[0];
  return std::string(print(part.standing)) + " by " + std::string(print(part.source));
}

TEST(Policy, KeyBeginsWithTheNumberOrElseTheName) {
  const auto policy = make("limits: {a: {rate: 5/s}, b: {rate: 5/s, number: 6}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}}}), "a:x 5 per 1s, burst 5 x1\n");
  EXPECT_EQ(charges(*policy, {{{"b", "x", 3}}}), "6:x 5 per 1s, burst 5 x3\n");
}

TEST(Policy, AGlobalLimitHasOneBucketWhateverIdIsNamed) {
  const auto policy = make("limits: {a: {key: global, rate: 5/s}}\noverrides: {a:global: {rate: 7/s}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}}}), "a:global 7 per 1s, burst 7 x1\n");
  EXPECT_EQ(charges(*policy, {{{"a", ""}, {"a", "y"}}}), "a:global 7 per 1s, burst 7 x2\n");
}

TEST(Policy, AnOverrideOfTheFirstPartsOfACompositeIsForEveryoneWhoHasThem) {
  const auto policy = make(
      "limits: {t: {key: [header:x-tenant, path:1], rate: 5/s}, plain: {rate: 5/s}}\n"
      "overrides: {t:corp: {blocked: true}, 't:corp:open': {rate: 7/s}, plain:corp: {blocked: true}}");
  EXPECT_EQ(charges(*policy, {{{"t", "corp:api"}}}), "blocked by t\n");
  EXPECT_EQ(charges(*policy, {{{"t", "corp"}}}), "blocked by t\n");
  EXPECT_EQ(charges(*policy, {{{"t", "corp:open"}}}), "t:corp:open 7 per 1s, burst 7 x1\n") << "more parts win";
  EXPECT_EQ(charges(*policy, {{{"t", "corporate:api"}}}), "t:corporate:api 5 per 1s, burst 5 x1\n");
  EXPECT_EQ(charges(*policy, {{{"t", "other:corp"}}}), "t:other:corp 5 per 1s, burst 5 x1\n");
  EXPECT_EQ(charges(*policy, {{{"plain", "corp:api"}}}), "plain:corp:api 5 per 1s, burst 5 x1\n") << "no composite";

  const std::array<Attribute, 3> request{{{"method", "GET"}, {"path", "/api/x"}, {"header:x-tenant", "corp"}}};
  const Query query{RequestFacts{request}};
  Resolved out;
  ASSERT_TRUE(policy->resolve(query, {}, {Time{}, kFriday}, out));
  EXPECT_NE(out.blocked(), nullptr);
}

TEST(Policy, NumbersComeFromTheOverrideThenTheScheduleThenTheLimit) {
  const auto policy = make(
      "limits: {a: {rate: 5/s, schedule: [{days: fri, count: 6}]}}\n"
      "overrides: {a:x: {rate: 7/s}}");
  const Wall thursday = kFriday - 24h;
  EXPECT_EQ(charges(*policy, {{{"a", "x"}}}), "a:x 7 per 1s, burst 7 x1\n");
  EXPECT_EQ(source(*policy, {{{"a", "x"}}}), "charged by override");
  EXPECT_EQ(charges(*policy, {{{"a", "y"}}}), "a:y 6 per 1s, burst 6 x1\n");
  EXPECT_EQ(source(*policy, {{{"a", "y"}}}), "charged by schedule");
  EXPECT_EQ(charges(*policy, {.charges = {{"a", "y"}}, .wall = thursday}), "a:y 5 per 1s, burst 5 x1\n");
  EXPECT_EQ(source(*policy, {.charges = {{"a", "y"}}, .wall = thursday}), "charged by limit");
}

TEST(Policy, AScheduleKeepsABurstThatWasWritten) {
  const auto policy = make("limits: {a: {rate: 5/s, burst: 20, schedule: [{count: 6}]}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}}}), "a:x 6 per 1s, burst 20 x1\n");
}

TEST(Policy, AnUnknownLimitIsAnErrorThatNamesIt) {
  const auto policy = make("limits: {a: {rate: 5/s}}");
  Resolved out;
  const Result<void> result = resolve(*policy, {{{"x", "y"}}}, out);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), (Error{Fault::unknown, "unknown limit \"x\""}));
}

TEST(Policy, AnUnknownLimitGetsTheNearestName) {
  const auto policy = make("limits: {orders: {rate: 5/s}, logins: {rate: 5/s}}");
  EXPECT_EQ(charges(*policy, {{{"ordres", "y"}}}), "unknown limit \"ordres\"; did you mean \"orders\"?");
  EXPECT_EQ(policy->bucket_id("login", "y").error().detail, "unknown limit \"login\"; did you mean \"logins\"?");
}

TEST(Policy, ABadIdIsAnErrorThatNamesLimitIdAndRule) {
  const auto policy = make("limits: {a: {rate: 5/s, id: regId}, b: {rate: 5/s, key: ip}}");
  EXPECT_EQ(charges(*policy, {{{"a", "12x"}}}), "limit \"a\": \"12x\" is not a regId: only decimal digits are allowed");
  EXPECT_TRUE(charges(*policy, {{{"b", "1.2.3"}}}).starts_with("limit \"b\": \"1.2.3\" is not an IP address"));
}

TEST(Policy, ANegativeCostIsRefusedAndZeroIsNot) {
  const auto policy = make("limits: {a: {rate: 5/s}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x", -1}}}), "limit \"a\": cost -1 must not be negative; a refund gives back");
  EXPECT_EQ(charges(*policy, {{{"a", "x", 0}}}), "a:x 5 per 1s, burst 5 x0\n");
}

TEST(Policy, TheSameBucketTwiceIsChargedOnceWithTheSummedCost) {
  const auto policy = make("limits: {a: {rate: 5/s, id: regId, quota: 9/day}, b: {rate: 5/s}}");
  EXPECT_EQ(charges(*policy, {{{"a", "7", 2}, {"b", "7"}, {"a", "007", 3}}}),
            "a:7 5 per 1s, burst 5 x5\na:7 quota 9 x5\nb:7 5 per 1s, burst 5 x1\n");
  Resolved out;
  ASSERT_TRUE(resolve(*policy, {{{"a", "7"}, {"a", "7"}}}, out));
  EXPECT_EQ(out.parts().size(), 2u);
  EXPECT_EQ(out.parts()[0].charge, 0u);
  EXPECT_EQ(out.parts()[1].charge, 0u);
}

TEST(Policy, SummedCostsDoNotOverflow) {
  const auto policy = make("limits: {a: {rate: 5/s}}");
  const Count max = std::numeric_limits<Count>::max();
  EXPECT_EQ(charges(*policy, {{{"a", "x", max}, {"a", "x", 1}}}),
            "a:x 5 per 1s, burst 5 x" + std::to_string(max) + "\n");
}

TEST(Policy, ChargesAsManyLimitsAsTheBoundEachWithARateAndAQuotaAndNotOneMore) {
  std::string yaml = "limits:\n";
  std::vector<std::string> names;
  for (std::size_t i = 0; i <= bounds::charges_max; ++i) {
    names.push_back("l" + std::to_string(i));
    yaml += "  " + names.back() + ": {rate: 1/s, quota: 1/day}\n";
  }
  const auto policy = make(yaml);
  Asked asked;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) asked.charges.push_back({names[i], "x"});
  Resolved out;
  ASSERT_TRUE(resolve(*policy, asked, out));
  ASSERT_EQ(out.charges().size(), bounds::charges_max);
  std::size_t buckets = 0;
  for (const Charge& charge : out.charges()) buckets += charge.buckets();
  EXPECT_EQ(buckets, bounds::charged_buckets_max);
  asked.charges.push_back({names.back(), "x"});
  EXPECT_EQ(charges(*policy, asked), "17 limits are named; at most 16 can be charged at once");
}

TEST(Policy, ALimitWithARateAndAQuotaIsOneCharge) {
  const auto policy =
      make("limits: {a: {rate: 5/s, quota: 9/day, number: 6}}\noverrides: {a:x: {rate: 7/s}, a:y: {quota: 2/day}}");
  Resolved out;
  ASSERT_TRUE(resolve(*policy, {{{"a", "z"}}}, out));
  ASSERT_EQ(out.charges().size(), 1u);
  EXPECT_EQ(out.parts()[0].charge, 0u);
  EXPECT_EQ(out.charges()[0].rate->key, "6:z");
  EXPECT_EQ(out.charges()[0].quota->key, "6:z");
  ASSERT_TRUE(resolve(*policy, {{{"a", "y"}, {"a", "y", 2}}}, out));
  ASSERT_EQ(out.charges().size(), 1u);
  EXPECT_EQ(out.charges()[0].cost, 3);
  EXPECT_EQ(out.charges()[0].rate->source, Source::limit);
  EXPECT_EQ(out.charges()[0].quota->source, Source::override);
}

TEST(Policy, KeysStayWholeWhileTheirTextGrows) {
  std::string yaml = "limits:\n";
  Asked asked;
  const std::string longest(bounds::id_bytes_max, 'x');
  std::vector<std::string> names;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) names.push_back("l" + std::to_string(i));
  for (const std::string& name : names) {
    yaml += "  " + name + ": {rate: 1/s, quota: 9/day}\n";
    asked.charges.push_back({name, longest});
  }
  const auto policy = make(yaml);
  Resolved out;
  ASSERT_TRUE(resolve(*policy, asked, out));
  for (std::size_t i = 0; i < bounds::charges_max; ++i) {
    EXPECT_EQ(out.charges()[i].rate->key, names[i] + ":" + longest);
    EXPECT_EQ(out.charges()[i].quota->key, names[i] + ":" + longest);
    EXPECT_EQ(out.parts()[i].id, longest);
  }
}

TEST(Policy, BlockedDeniesTogetherWithoutAnyCharge) {
  const auto policy = make("limits: {a: {rate: 5/s}, b: {rate: 5/s}}\noverrides: {b:x: {blocked: true}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}, {"b", "x"}, {"a", "y"}}}), "blocked by b\n");
  EXPECT_EQ(source(*policy, {{{"b", "x"}}}), "blocked by override");
}

TEST(Policy, BlockedInOrderChargesWhatStandsBefore) {
  const auto policy = make("limits: {a: {rate: 5/s}, b: {rate: 5/s}}\noverrides: {b:x: {blocked: true}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}, {"b", "x"}, {"a", "y"}}, Order::in_order}),
            "blocked by b\na:x 5 per 1s, burst 5 x1\n");
}

TEST(Policy, BlockedInShadowOrByAResetDeniesNobody) {
  const auto policy = make(
      "limits: {a: {rate: 5/s, mode: shadow}, b: {rate: 1/s}}\noverrides: {a:x: {blocked: true}, b:x: {blocked: "
      "true}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}, {"b", "y"}}}), "b:y 1 per 1s, burst 1 x1\n");
  EXPECT_EQ(charges(*policy, {{{"b", "x"}}, Order::together, Mode::reset}), "");
}

TEST(Policy, UnlimitedOffAndNumberlessChargeNothing) {
  const auto policy = make(
      "limits: {a: {rate: 5/s}, b: {average: 0}, c: {rate: 1/s, mode: off}}\nnames: {d: {}}\n"
      "overrides: {a:x: {unlimited: true}, d:y: {rate: 2/s}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}, {"b", "x"}, {"c", "x"}, {"d", "x"}}}), "");
  EXPECT_EQ(source(*policy, {{{"a", "x"}}}), "unlimited by override");
  EXPECT_EQ(source(*policy, {{{"b", "x"}}}), "unlimited by limit");
  EXPECT_EQ(source(*policy, {{{"c", "x"}}}), "off by limit");
  EXPECT_EQ(source(*policy, {{{"d", "x"}}}), "unlimited by limit");
  EXPECT_EQ(charges(*policy, {{{"d", "y"}}}), "d:y 2 per 1s, burst 2 x1\n");
}

TEST(Policy, ShadowIsMarkedOnTheCharge) {
  const auto policy = make("limits: {a: {rate: 5/s, quota: 7/day, mode: shadow}}");
  EXPECT_EQ(charges(*policy, {{{"a", "x"}}}), "a:x 5 per 1s, burst 5 x1 shadow\na:x quota 7 x1 shadow\n");
}

TEST(Policy, AQuotaHasTheWindowOfItsZone) {
  const auto policy = make("limits: {a: {quota: 7/day, zone: Europe/London}}\noverrides: {a:x: {quota: 8/month}}");
  Resolved out;
  ASSERT_TRUE(resolve(*policy, {{{"a", "y"}}}, out));
  ASSERT_EQ(out.charges().size(), 1u);
  EXPECT_EQ(out.charges()[0].quota->quota.window.end, (Wall{sys_days{year{2024} / 7 / 5} + 23h})) << "local midnight";
  ASSERT_TRUE(resolve(*policy, {{{"a", "x"}}}, out));
  EXPECT_EQ(out.charges()[0].quota->quota.size, 8);
  EXPECT_EQ(out.charges()[0].quota->quota.window.end, (Wall{sys_days{year{2024} / 7 / 31} + 23h}));
  EXPECT_EQ(out.parts()[0].source, Source::override);
  EXPECT_EQ(out.charges()[0].quota->source, Source::override);
}

TEST(Policy, AddressesAreCountedByThePrefixAndTheMostSpecificOverrideWins) {
  const auto policy = make(
      "limits: {per-ip: {key: ip, rate: 1/s}}\n"
      "overrides: {per-ip:10.0.0.0/8: {rate: 2/s}, per-ip:10.20.0.0/16: {rate: 3/s}, per-ip:10.20.0.1: {rate: 4/s}, "
      "'per-ip:2001:db8:1::/48': {rate: 5/s}, 'per-ip:2001:db8:1::bad': {blocked: true}}");
  EXPECT_EQ(charges(*policy, {{{"per-ip", "10.20.0.1"}}}), "per-ip:10.20.0.1 4 per 1s, burst 4 x1\n");
  EXPECT_EQ(charges(*policy, {{{"per-ip", "10.20.0.2"}}}), "per-ip:10.20.0.2 3 per 1s, burst 3 x1\n");
  EXPECT_EQ(charges(*policy, {{{"per-ip", "10.1.0.2"}}}), "per-ip:10.1.0.2 2 per 1s, burst 2 x1\n");
  EXPECT_EQ(charges(*policy, {{{"per-ip", "::ffff:11.0.0.1"}}}), "per-ip:11.0.0.1 1 per 1s, burst 1 x1\n");
  EXPECT_EQ(charges(*policy, {{{"per-ip", "2001:0db8:0001:0002::9"}}}),
            "per-ip:2001:db8:1:2::/64 5 per 1s, burst 5 x1\n");
  EXPECT_EQ(charges(*policy, {{{"per-ip", "2001:db8:1:2::/64"}}}), "per-ip:2001:db8:1:2::/64 5 per 1s, burst 5 x1\n");
  EXPECT_EQ(charges(*policy, {{{"per-ip", "2001:db8:1::bad"}}}), "blocked by per-ip\n");
  EXPECT_TRUE(charges(*policy, {{{"per-ip", "10.0.0.0/8"}}}).starts_with("limit \"per-ip\": "));
}

TEST(Policy, TwoAddressesOfOnePrefixAreOneBucket) {
  const auto policy = make(
      "limits: {a: {key: ip, rate: 1/s}, b: {key: ip, id: ipAddress, rate: 1/s}}\n"
      "access: {ipv6_prefix: 48}");
  EXPECT_EQ(charges(*policy, {{{"a", "2001:db8::1"}, {"a", "2001:db8:0:5::1"}}}),
            "a:2001:db8::/48 1 per 1s, burst 1 x2\n");
  EXPECT_EQ(charges(*policy, {{{"b", "2001:db8::1"}, {"b", "2001:db8:0:5::1"}}}),
            "b:2001:db8::1 1 per 1s, burst 1 x1\nb:2001:db8:0:5::1 1 per 1s, burst 1 x1\n");
}

TEST(Policy, HashedIdsNeverAppearAndStillFindTheirOverride) {
  const auto policy = make("limits: {a: {rate: 1/s, hashed: true}}\noverrides: {a:someone: {rate: 2/s}}");
  EXPECT_EQ(charges(*policy, {{{"a", "someone"}}}), "a:" + hashed_id("key", "someone") + " 2 per 1s, burst 2 x1\n");
  Resolved out;
  ASSERT_TRUE(resolve(*policy, {{{"a", "someone"}}}, out));
  EXPECT_EQ(out.parts()[0].id, hashed_id("key", "someone"));
}

// Issue 14, row 12.
TEST(Policy, EntriesHashedUnderAnotherKeyAreOrphaned) {
  const std::string limits = "limits: {h: {rate: 1/s, hashed: true}, p: {rate: 1/s}}\nhash_key: ";
  const auto first = make(limits + "one");
  const auto second = make(limits + "two");
  const std::string mark(first->hash_mark(*first->find("h")));
  EXPECT_EQ(mark.size(), bounds::hash_mark_bytes);
  EXPECT_EQ(first->hash_mark(*first->find("p")), "");
  const std::string id = *first->bucket_id("h", "someone");
  EXPECT_FALSE(first->is_orphaned("h", id, mark));
  EXPECT_TRUE(second->is_orphaned("h", id, mark));
  EXPECT_FALSE(second->is_orphaned("h", id, "")) << "nobody noted the key";
  EXPECT_TRUE(first->is_orphaned("h", "someone", "")) << "the limit was not hashed then";
  EXPECT_TRUE(first->is_orphaned("p", id, mark)) << "the limit is not hashed any more";
  EXPECT_FALSE(first->is_orphaned("p", "someone", ""));
}

TEST(Policy, AHashedLimitWithoutAKeyIsOurOwnFailure) {
  const config::Outcome outcome = config::parse("limits: {a: {rate: 1/s, hashed: true}}", "t.yaml", {});
  const Policy& policy = *std::get<config::Loaded>(outcome).policy;
  EXPECT_TRUE(policy.lacks_hash_key());
  Resolved out;
  EXPECT_EQ(resolve(policy, {{{"a", "x"}}}, out).error().fault, Fault::internal);
}

TEST(Policy, FailurePolicyIsTheLimitsOrElseTheFiles) {
  const auto policy =
      make("failure_policy: failClosed\nlimits: {a: {rate: 1/s}, b: {rate: 1/s, failure_policy: passThrough}}");
  Resolved out;
  ASSERT_TRUE(resolve(*policy, {{{"a", "x"}, {"b", "x"}}}, out));
  EXPECT_EQ(out.charges()[0].on_failure, FailurePolicy::fail_closed);
  EXPECT_EQ(out.charges()[1].on_failure, FailurePolicy::pass_through);
}

TEST(Policy, AKeyHoldsAtItsBoundAndNotOnePastIt) {
  const auto policy = make("limits: {a: {rate: 1/s, id: email:email:email:email:text}, b: {rate: 1/s}}");
  EXPECT_EQ(charges(*policy, {{{"b", std::string(256, 'x')}}}),
            "b:" + std::string(256, 'x') + " 1 per 1s, burst 1 x1\n");
  const std::string mail = std::string(63, 'l') + "@" + std::string(60, 'a') + "." + std::string(60, 'b') + "." +
                           std::string(58, 'c') + ".de";  // 247 bytes
  const std::string mails = mail + ":" + mail + ":" + mail + ":" + mail + ":";
  const std::size_t room = bounds::key_bytes_max - 2 - mails.size();
  Resolved out;
  EXPECT_TRUE(resolve(*policy, {{{"a", mails + std::string(room, 't')}}}, out));
  EXPECT_TRUE(
      charges(*policy, {{{"a", mails + std::string(room + 1, 't')}}}).ends_with("makes a key longer than 1024 bytes"));
}

TEST(Policy, ResolvedCanBeUsedAgain) {
  const auto policy = make("limits: {a: {rate: 1/s}}\noverrides: {a:b: {blocked: true}}");
  Resolved out;
  ASSERT_TRUE(resolve(*policy, {{{"a", "b"}}}, out));
  EXPECT_NE(out.blocked(), nullptr);
  ASSERT_TRUE(resolve(*policy, {{{"a", "c"}}}, out));
  EXPECT_EQ(out.blocked(), nullptr);
  EXPECT_EQ(out.charges()[0].rate->key, "a:c");
}

Known knowing(std::vector<Adjustment> adjustments, std::vector<AccessEntry> entries = {}) {
  Known::Parts parts;
  parts.adjustments = std::make_shared<const Adjustments>(std::move(adjustments));
  parts.entries = std::make_shared<const AccessList>(AccessList::build(std::move(entries)).value());
  return Known(std::move(parts));
}

Adjustment adjustment(std::string limit, std::string id, Count burst) {
  Adjustment one;
  one.limit = std::move(limit);
  one.id = std::move(id);
  one.burst = burst;
  one.expires = kFriday + 1h;
  return one;
}

AccessEntry listed(AccessEntry::List list, std::string limit, std::string id) {
  AccessEntry entry;
  entry.list = list;
  entry.limit = std::move(limit);
  entry.id = std::move(id);
  return entry;
}

TEST(Policy, AnAdjustmentBeatsEverythingElseThatHasNumbers) {
  const auto policy = make(
      "limits: {a: {rate: 5/s, number: 6, schedule: [{days: fri, count: 6}]}}\n"
      "overrides: {a:x: {rate: 7/s}, a:b: {blocked: true}, a:u: {unlimited: true}}");
  const Known known = knowing({adjustment("a", "x", 50), adjustment("a", "y", 50), adjustment("a", "b", 50),
                               adjustment("a", "u", 50), adjustment("a", "z", 0)});
  const auto asked = [&](std::string_view id, Wall wall = kFriday) {
    Asked one{{{"a", id}}};
    one.known = known;
    one.wall = wall;
    return one;
  };
  EXPECT_EQ(charges(*policy, asked("x")), "6:x 7 per 1s, burst 50 x1\n");
  EXPECT_EQ(source(*policy, asked("x")), "charged by adjustment");
  EXPECT_EQ(charges(*policy, asked("y")), "6:y 6 per 1s, burst 50 x1\n");
  EXPECT_EQ(source(*policy, asked("b")), "charged by adjustment");
  EXPECT_EQ(charges(*policy, asked("u")), "6:u 6 per 1s, burst 50 x1\n");
  EXPECT_EQ(source(*policy, asked("b", kFriday + 1h)), "blocked by override") << "it has ended";
  EXPECT_EQ(source(*policy, asked("z")), "charged by schedule") << "numbers that break a rule sleep";
}

TEST(Policy, ListsAreAskedBeforeAnyLimitAndDenyFirst) {
  const auto policy = make("limits: {a: {rate: 5/s}, b: {rate: 5/s, mode: off}}\noverrides: {a:x: {blocked: true}}");
  Asked asked{{{"a", "x"}}};
  asked.known = knowing({}, {listed(AccessEntry::List::allow, "a", "x")});
  EXPECT_EQ(charges(*policy, asked), "");
  EXPECT_EQ(source(*policy, asked), "allow_listed by limit") << "no override is asked";
  asked.known = knowing({adjustment("a", "x", 5)},
                        {listed(AccessEntry::List::allow, "a", "x"), listed(AccessEntry::List::deny, "a", "x")});
  EXPECT_EQ(source(*policy, asked), "deny_listed by limit");
  asked.mode = Mode::reset;
  EXPECT_EQ(charges(*policy, asked), "a:x 5 per 1s, burst 5 x1\n") << "a reset forgets the bucket of anybody";
  Asked off{{{"b", "x"}}};
  off.known = knowing({}, {listed(AccessEntry::List::deny, "b", "x")});
  EXPECT_EQ(source(*policy, off), "deny_listed by limit");
}

TEST(Policy, AnEntryAboutOneLimitsIdLeavesTheOtherLimitsToDecide) {
  const auto policy = make("limits: {a: {rate: 5/s}, b: {rate: 5/s}}");
  Asked asked{{{"a", "x"}, {"b", "x"}}};
  asked.known = knowing({}, {listed(AccessEntry::List::allow, "a", "x")});
  EXPECT_EQ(charges(*policy, asked), "b:x 5 per 1s, burst 5 x1\n");
}

TEST(Policy, ConfiguredListsKnowAddressesKeysAndIds) {
  const auto policy = make(
      "limits:\n"
      "  per-ip: {key: ip, rate: 5/s}\n"
      "  per-key: {key: apikey, rate: 5/s, hashed: true}\n"
      "  orders: {rate: 5/s, id: domain}\n"
      "  mails: {rate: 5/s, hashed: true}\n"
      "hash_key: k\n"
      "access:\n"
      "  deny: [{ip: 203.0.113.0/24}, {ip: 2001:db8::1}, {apikey: K}, {limit: orders, id: EXAMPLE.com}, {limit: mails, "
      "id: m}]");
  const auto standing = [&](std::string_view limit, std::string_view id) { return source(*policy, {{{limit, id}}}); };
  EXPECT_EQ(standing("per-ip", "203.0.113.9"), "deny_listed by limit");
  EXPECT_EQ(standing("per-ip", "::ffff:203.0.113.9"), "deny_listed by limit") << "the same address";
  EXPECT_EQ(standing("per-ip", "203.0.114.9"), "charged by limit");
  EXPECT_EQ(standing("per-ip", "2001:db8::1"), "deny_listed by limit");
  EXPECT_EQ(standing("per-ip", "2001:db8::2"), "charged by limit") << "another address of the same bucket";
  EXPECT_EQ(standing("per-key", "K"), "deny_listed by limit");
  EXPECT_EQ(standing("per-key", "k"), "charged by limit");
  EXPECT_EQ(standing("orders", "example.COM"), "deny_listed by limit");
  EXPECT_EQ(standing("mails", "m"), "deny_listed by limit");
  EXPECT_EQ(policy->access().entries()[0].added_by, "configuration");
}

TEST(Policy, TellsTheIdOfABucketAndItsNumbersInForce) {
  const auto policy = make(
      "limits: {per-ip: {key: ip, rate: 5/s}, h: {rate: 5/s, hashed: true}}\nhash_key: k\n"
      "overrides: {per-ip:10.0.0.0/8: {rate: 9/s}}");
  EXPECT_EQ(*policy->bucket_id("per-ip", "2001:DB8::1"), "2001:db8::/64");
  const std::string hash = *policy->bucket_id("h", "someone");
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(*policy->bucket_id("h", hash), hash) << "lists show nothing else";
  EXPECT_EQ(policy->bucket_id("nope", "x").error().fault, Fault::unknown);
  EXPECT_EQ(policy->bucket_id("per-ip", "x").error().fault, Fault::invalid);
  const NamedLimit& limit = *policy->find("per-ip");
  EXPECT_EQ(policy->in_force(limit, "10.1.1.1", Known(), kFriday).numbers->count(), 9);
  const Known known = knowing({adjustment("per-ip", "10.1.1.1", 50)});
  EXPECT_EQ(policy->in_force(limit, "10.1.1.1", known, kFriday).numbers->burst(), 50);
  EXPECT_EQ(policy->in_force(limit, "10.1.1.1", known, kFriday).source, Source::adjustment);
}

}  // namespace
}  // namespace weir::policy_test
