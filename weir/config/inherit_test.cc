// What an override inherits from its limit, and what YAML merge keys bring.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "weir/config/describe.h"
#include "weir/config/diff.h"
#include "weir/config/parse.h"

namespace weir::config::inherit_test {
namespace {

Loaded loaded(std::string_view yaml) {
  Outcome outcome = parse(yaml, "t.yaml", {});
  const auto* const problems = std::get_if<Problems>(&outcome);
  EXPECT_EQ(problems, nullptr) << text(*problems);
  return std::get<Loaded>(std::move(outcome));
}

// The override of "a:x" in force.
std::string override_of(std::string_view limit, std::string_view value) {
  const std::string yaml = "limits: {a: " + std::string(limit) + "}\noverrides: {a:x: " + std::string(value) + "}";
  const Loaded policy = loaded(yaml);
  const NamedLimit& a = *policy.policy->find("a");
  const Override* const found = a.overrides.find("x");
  return found == nullptr ? "none" : print(*found, a);
}

TEST(OverrideInheritance, AnOverrideInheritsWhatItDoesNotSetFromItsLimit) {
  constexpr std::string_view rate = "{rate: 100/s}";
  constexpr std::string_view all = "{burst: 20, count: 100, period: 1s, quota: 1000/day}";
  EXPECT_EQ(override_of(rate, "{burst: 9}"), "100 per 1s, burst 9");
  EXPECT_EQ(override_of(rate, "{count: 600}"), "600 per 1s, burst 600") << "a burst that nobody wrote follows";
  EXPECT_EQ(override_of(rate, "{period: 1m}"), "100 per 1m, burst 100");
  EXPECT_EQ(override_of(all, "{count: 600}"), "600 per 1s, burst 20, quota 1000 per day");
  EXPECT_EQ(override_of(all, "{rate: 5/m}"), "5 per 1m, burst 20, quota 1000 per day");
  EXPECT_EQ(override_of(all, "{capacity: 7}"), "100 per 1s, burst 7, quota 1000 per day");
  EXPECT_EQ(override_of(all, "{addTokenMs: 500}"), "1 per 500ms, burst 20, quota 1000 per day");
  EXPECT_EQ(override_of(all, "{burst: 9, quota: 5/month}"), "100 per 1s, burst 9, quota 5 per month");
  EXPECT_EQ(override_of(all, "{quota: 5/month}"), "quota 5 per month")
      << "the rate stays the limit's or the schedule's";
  EXPECT_EQ(override_of(all, "{average: 0}"), "unlimited");
  EXPECT_EQ(override_of("{average: 0}", "{rate: 5/s}"), "5 per 1s, burst 5");
  EXPECT_EQ(override_of("{quota: 9/day}", "{rate: 5/s}"), "5 per 1s, burst 5, quota 9 per day");
}

TEST(OverrideInheritance, AScheduleDoesNotReachAnOverrideThatHasNumbers) {
  EXPECT_EQ(override_of("{rate: 100/s, burst: 20, schedule: [{count: 7}]}", "{count: 600}"), "600 per 1s, burst 20");
}

TEST(OverrideInheritance, ADiffShowsTheEffectOfAChangedLimitOnItsOverrides) {
  const Loaded before =
      loaded("limits: {a: {rate: 10/s, burst: 20}}\noverrides: {a:x: {count: 50}, a:y: {rate: 1/m, burst: 1}}");
  const Loaded after =
      loaded("limits: {a: {rate: 10/m, burst: 30}}\noverrides: {a:x: {count: 50}, a:y: {rate: 1/m, burst: 1}}");
  std::string changes;
  for (const Change& change : diff(before, after)) changes += change.text() + "\n";
  EXPECT_EQ(changes,
            "changed limit a: 10 per 1s, burst 20; id text -> 10 per 1m, burst 30; id text\n"
            "changed override a:x: 50 per 1s, burst 20 -> 50 per 1m, burst 30\n");
}

TEST(MergeKeys, AMapTakesWhatItDoesNotSayFromTheMapsItMerges) {
  const Loaded merged = loaded(
      "limits:\n"
      "  base: &base {rate: 100/s, burst: 20, mode: shadow}\n"
      "  quick: &quick {rate: 5/s, burst: 50}\n"
      "  a: &a {<<: *base, burst: 3}\n"
      "  b: {mode: enforce, <<: [*quick, *base]}\n"
      "  c: {<<: *a}\n");
  const auto words = [&](std::string_view name) {
    const Described row = describe(*merged.policy->find(name));
    return row.numbers + " " + row.mode;
  };
  EXPECT_EQ(words("a"), "100 per 1s, burst 3 shadow");
  EXPECT_EQ(words("b"), "5 per 1s, burst 50 enforce") << "own entries first, then the earlier map";
  EXPECT_EQ(words("c"), "100 per 1s, burst 3 shadow") << "merged maps merge";
}

TEST(MergeKeys, AnEmptyMapAddsNothing) {
  EXPECT_EQ(override_of("{rate: 1/s}", "{<<: {}, burst: 4}"), "1 per 1s, burst 4");
  EXPECT_EQ(override_of("{rate: 1/s}", "{<<: [], burst: 4}"), "1 per 1s, burst 4");
}

}  // namespace
}  // namespace weir::config::inherit_test
