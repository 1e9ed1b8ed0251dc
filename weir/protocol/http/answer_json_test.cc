#include "weir/protocol/http/answer_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace weir::answer_json_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// Limit "per-ip" with a rate that passes and a quota that denies.
Answer denied_by_quota() {
  Answer answer;
  answer.verdict.all.push_back({Decision{true, 20, 19, 0ns, 50ms}, Decision{false, 100, 0, 36s, 36s}});
  answer.verdict.allowed = false;
  answer.labels[0] = {"per-ip", "203.0.113.9", "ip", {"per-ip~pro:203.0.113.9", 1s, 50ms, Source::tier}};
  answer.labels[0].quota = {"per-ip:203.0.113.9", 24h, 0ns, Source::override};
  answer.labelled = 1;
  return answer;
}

std::string written(const Answer& answer, bool explain) {
  std::string out;
  write_answer(answer, explain, Denial::plain, out);
  return out;
}

TEST(AnswerJson, ALimitWithARateAndAQuotaIsOneDecisionThatHoldsBoth) {
  EXPECT_EQ(written(denied_by_quota(), false),
            R"({"allowed":false,"limit":"per-ip","id":"203.0.113.9","burst":100,"remaining":0,"retry_after":36,)"
            R"("reset_after":36,"decisions":[{"limit":"per-ip","id":"203.0.113.9","allowed":false,"burst":100,)"
            R"("remaining":0,"retry_after":36,"reset_after":36,"shadow":false,)"
            R"("rate":{"allowed":true,"burst":20,"remaining":19,"retry_after":0,"reset_after":0.05},)"
            R"("quota":{"allowed":false,"burst":100,"remaining":0,"retry_after":36,"reset_after":36}}]})");
}

TEST(AnswerJson, ExplainsBothHalvesAndNamesTheirLimitOnce) {
  const json explained = json::parse(written(denied_by_quota(), true));
  EXPECT_EQ(explained["limits"], json::parse(R"(["per-ip"])"));
  const json& decision = explained["decisions"][0];
  EXPECT_EQ(decision["source"], "override") << "of the stricter half";
  EXPECT_EQ(decision["bucket"], "per-ip:203.0.113.9");
  EXPECT_EQ(decision["rate"]["source"], "tier");
  EXPECT_EQ(decision["rate"]["bucket"], "per-ip~pro:203.0.113.9");
  EXPECT_EQ(decision["quota"]["source"], "override");
  EXPECT_EQ(decision["quota"]["bucket"], "per-ip:203.0.113.9");
}

TEST(AnswerJson, ALimitWithOneHalfHasNoObjects) {
  Answer answer = denied_by_quota();
  answer.verdict.all[0] = {Decision{false, 100, 0, 36s, 36s}, Kind::quota};
  const json decision = json::parse(written(answer, true))["decisions"][0];
  EXPECT_FALSE(decision.contains("rate"));
  EXPECT_FALSE(decision.contains("quota"));
  EXPECT_EQ(decision["source"], "override");
}

TEST(AnswerJson, AProblemDocumentNamesTheHalfThatDenied) {
  std::string out;
  write_denial_problem(denied_by_quota(), out);
  EXPECT_EQ(json::parse(out)["violated-policies"], json::parse(R"(["per-ip.quota"])"));
}

}  // namespace
}  // namespace weir::answer_json_test
