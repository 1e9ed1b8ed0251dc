#include "weir/policy/explain.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/config/parse.h"

namespace weir::explain_test {
namespace {

using namespace std::chrono_literals;

constexpr Decision kPasses{true, 5, 4, 0ns, 1s};
constexpr Decision kDenies{false, 5, 0, 1s, 1s};

class Explained : public testing::Test {
 protected:
  // Answers a query for these limits as if every charge got this decision.
  Answer ask(std::string_view yaml, const std::vector<NamedCharge>& charges, const LimitDecision& decision,
             Mode mode = Mode::spend, Order order = Order::together) {
    const config::Outcome outcome = config::parse(std::string(yaml), "test.yaml", {});
    policy_ = std::get<config::Loaded>(outcome).policy;
    Answer answer;
    answer.now = {Time{10s}, Wall{1000s}};
    EXPECT_TRUE(policy_->resolve({NamedCharges{charges, order}, mode}, Known{}, answer.now, resolved_));
    Decisions decisions;
    for (std::size_t i = 0; i < resolved_.charges().size(); ++i) decisions.push_back(decision);
    answer.verdict = conclude(decisions, [&](std::size_t i) { return resolved_.charges()[i].role(); });
    explain(*policy_, resolved_, mode, answer);
    return answer;
  }
  // "limit:id allowed" for every decision; the request's own is marked.
  static std::string print(const Answer& answer) {
    std::string text = answer.verdict.allowed ? "passes" : "denied";
    for (std::size_t i = 0; i < answer.verdict.all.size(); ++i) {
      const Label& label = answer.labels[i];
      text.append(i == answer.verdict.strictest ? ", *" : ", ").append(label.limit).append(":").append(label.id);
      text += answer.verdict.all[i].allowed() ? " passes" : " denies";
    }
    return text;
  }

  std::shared_ptr<const Policy> policy_;
  Resolved resolved_;
};

TEST_F(Explained, ALimitWithARateAndAQuotaHasOneLabelForBoth) {
  const Answer answer = ask("limits: {a: {rate: 5/s, quota: 9/day, number: 6}, b: {rate: 1/s}}",
                            {{"a", "x"}, {"b", "y"}}, {kPasses, kPasses});
  EXPECT_EQ(print(answer), "passes, *a:x passes, b:y passes");
  EXPECT_EQ(answer.labelled, 2u);
  EXPECT_EQ(answer.labels[0].rate.key, "6:x");
  EXPECT_EQ(answer.labels[0].rate.interval, 200ms);
  EXPECT_EQ(answer.labels[0].quota.key, "6:x");
  EXPECT_EQ(answer.labels[0].quota.window, 24h);
  EXPECT_EQ(answer.labels[1].rate.key, "b:y");
  EXPECT_EQ(answer.labels[1].quota.key, "");
}

TEST_F(Explained, ALimitSaysWhatWasAskedAndTheTierThatItDefines) {
  const Answer answer = ask("limits: {a: {rate: 5/s, tiers: {pro: {rate: 7/s}}}}",
                            {{"a", "x"}, {"a", "y", 3, "pro"}, {"a", "z", 1, "none"}}, kPasses);
  EXPECT_EQ(answer.labels[0].cost, 1);
  EXPECT_EQ(answer.labels[0].tier, "");
  EXPECT_EQ(answer.labels[1].cost, 3);
  EXPECT_EQ(answer.labels[1].tier, "pro");
  EXPECT_EQ(answer.labels[2].tier, "");
}

TEST_F(Explained, EachHalfSaysWhereItsNumbersComeFrom) {
  constexpr std::string_view kYaml =
      "limits: {a: {rate: 5/s, quota: 9/day, tiers: {pro: {rate: 7/s}}}}\noverrides: {a:x: {quota: 2/day}}";
  const Answer answer = ask(kYaml, {{"a", "x"}, {"a", "y", 1, "pro"}}, {kPasses, kPasses});
  EXPECT_EQ(answer.labels[0].rate.source, Source::limit);
  EXPECT_EQ(answer.labels[0].quota.source, Source::override);
  EXPECT_EQ(answer.labels[1].rate.source, Source::tier);
  EXPECT_EQ(answer.labels[1].rate.key, "a~pro:y");
  EXPECT_EQ(answer.labels[1].quota.key, "a:y") << "all tiers share it";
}

constexpr std::string_view kBlocked =
    "limits: {a: {rate: 5/s}, b: {rate: 5/s}, s: {rate: 5/s, mode: shadow}}\n"
    "overrides: {b:bad: {blocked: true}, b:free: {unlimited: true}, s:bad: {blocked: true}}\n"
    "access: {deny: [{limit: a, id: worst}], allow: [{limit: a, id: best}]}\n";

TEST_F(Explained, ABlockSpeaksForTheRequest) {
  const Answer together = ask(kBlocked, {{"a", "x"}, {"b", "bad"}}, kPasses);
  EXPECT_EQ(print(together), "denied, *b:bad denies");
  EXPECT_EQ(together.verdict.speaker().retry_after, kNever);
  EXPECT_EQ(print(ask(kBlocked, {{"a", "x"}, {"b", "bad"}}, kPasses, Mode::spend, Order::in_order)),
            "denied, a:x passes, *b:bad denies");
  EXPECT_EQ(print(ask(kBlocked, {{"a", "x"}, {"b", "bad"}}, kDenies, Mode::spend, Order::in_order)),
            "denied, *a:x denies")
      << "an earlier denial has answered";
  for (const Mode mode : {Mode::refund, Mode::reset}) {
    EXPECT_EQ(print(ask(kBlocked, {{"b", "bad"}}, kPasses, mode)), "denied, *b:bad denies");
  }
}

TEST_F(Explained, LimitsThatChargeNothingAreNamedBehindTheOthers) {
  EXPECT_EQ(print(ask(kBlocked, {{"b", "free"}, {"a", "x"}}, kPasses)), "passes, *a:x passes, b:free passes");
  EXPECT_EQ(print(ask(kBlocked, {{"s", "bad"}, {"a", "x"}}, kPasses)), "passes, *a:x passes, s:bad denies");
}

TEST_F(Explained, TheListsSpeakBeforeAnyLimit) {
  const Answer denied = ask(kBlocked, {{"a", "worst"}, {"b", "x"}}, kPasses);
  EXPECT_EQ(print(denied), "denied, *a:worst denies");
  EXPECT_EQ(denied.access, Access::deny_listed);
  EXPECT_EQ(ask(kBlocked, {{"a", "best"}}, kPasses).access, Access::allow_listed);
}

TEST_F(Explained, ARefusalTakesTheLastPlaceWhereThereIsNoRoom) {
  std::string yaml = "limits: {b: {rate: 1/s}";
  std::vector<std::string> names;
  for (std::size_t i = 1; i < bounds::charges_max; ++i) names.push_back("l" + std::to_string(i));
  std::vector<NamedCharge> charges;
  for (const std::string& name : names) {
    yaml += ", " + name + ": {rate: 1/s}";
    charges.push_back({name, "x"});
  }
  charges.push_back({"b", "bad"});
  yaml += "}\noverrides: {b:bad: {blocked: true}}";
  const Answer answer = ask(yaml, charges, kPasses, Mode::spend, Order::in_order);
  EXPECT_EQ(answer.verdict.all.size(), bounds::charges_max);
  EXPECT_EQ(answer.labels[answer.verdict.strictest].limit, "b");
}

TEST_F(Explained, ACallersOwnBucketIsCalledByItsKey) {
  Charge own;
  own.rate = RateCharge{.key = "*:user:42", .source = Source::caller};
  Answer answer;
  answer.verdict.all.push_back(kPasses);
  explain(own, answer);
  EXPECT_EQ(answer.labels[0].id, "user:42");
  EXPECT_EQ(answer.labels[0].bucket(), "*:user:42");
  EXPECT_EQ(answer.labels[0].rate.source, Source::caller);
}

}  // namespace
}  // namespace weir::explain_test
