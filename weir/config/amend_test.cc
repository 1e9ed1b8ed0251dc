#include "weir/config/amend.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/config/describe.h"
#include "weir/config/parse.h"

namespace weir::config::amend_test {
namespace {

using Kind = Amendment::Kind;

constexpr std::string_view kFile = R"(
limits:
  per-ip: {key: ip, burst: 20, count: 100, period: 1s}
  by-rate: {rate: 20 per minute}
  slow: {addTokenMs: 500, capacity: 8}
  free: {average: 0, period: 1s}
names:
  bare: {number: 7}
overrides:
  per-ip:10.0.0.2: {rate: 40/s}
admin: {write_token: secret}
)";

Outcome amended(std::vector<Amendment> amendments) {
  Options options;
  options.amendments = std::move(amendments);
  return parse(kFile, "weir.yaml", options);
}

// The numbers of a limit after one merge, or what is wrong with it.
std::string merged(const std::string& name, const std::string& numbers) {
  const Outcome outcome = amended({{Kind::merge, R"({"limits": {")" + name + "\": " + numbers + "}}"}});
  if (const auto* problems = std::get_if<Problems>(&outcome)) return text(*problems);
  const NamedLimit* limit = std::get<Loaded>(outcome).policy->find(name);
  return limit->numbers ? print(*limit->numbers) : "unlimited";
}

TEST(Amend, MergesNumbersHoweverTheFileSpellsThem) {
  EXPECT_EQ(merged("per-ip", R"({"count": 200})"), "200 per 1s, burst 20");
  EXPECT_EQ(merged("per-ip", R"({"period": "2s"})"), "100 per 2s, burst 20");
  EXPECT_EQ(merged("per-ip", R"({"rate": "0.5/s"})"), "1 per 2s, burst 20");
  EXPECT_EQ(merged("per-ip", R"({"burst": 7})"), "100 per 1s, burst 7");
  EXPECT_EQ(merged("per-ip", R"({"capacity": 7})"), "100 per 1s, burst 7");
  EXPECT_EQ(merged("by-rate", R"({"count": 30})"), "30 per 1m, burst 30");
  EXPECT_EQ(merged("by-rate", R"({"period": "1s"})"), "20 per 1s, burst 20");
  EXPECT_EQ(merged("by-rate", R"({"count": 5, "period": "1h"})"), "5 per 1h, burst 5");
  EXPECT_EQ(merged("slow", R"({"rate": "3/s"})"), "3 per 1s, burst 8");
  EXPECT_EQ(merged("slow", R"({"count": 4})"), "4 per 500ms, burst 8");
  EXPECT_EQ(merged("free", R"({"count": 4})"), "4 per 1s, burst 4");
  EXPECT_EQ(merged("bare", R"({"rate": "4/s"})"), "4 per 1s, burst 4");
}

TEST(Amend, IsCheckedLikeAFile) {
  EXPECT_EQ(merged("per-ip", R"({"burst": 0})"), "api:1:33: burst 0 must be at least 1\n");
  EXPECT_EQ(merged("per-ip", R"({"brust": 1})"), "api:1:24: unknown key \"brust\"; did you mean \"burst\"?\n");
  EXPECT_EQ(merged("per-ipp", R"({"burst": 1})"),
            "api:1:13: there is no limit \"per-ipp\"; did you mean \"per-ip\"?\n");
  EXPECT_EQ(merged("per-ip", "3"), "api:1:23: limit \"per-ip\" must be a map of numbers\n");
  const Outcome outcome = amended({{Kind::merge, R"({"store": "redis"})"}});
  EXPECT_EQ(text(std::get<Problems>(outcome)),
            "api:1:2: \"store\" cannot be merged: only a map of limits can; a whole policy is sent as "
            "application/yaml\n");
  EXPECT_EQ(text(std::get<Problems>(amended({{Kind::replace, "- 1"}}))),
            "api:1:1: a configuration must be a map of fields\n");
}

TEST(Amend, LaysOneOverAnother) {
  const Outcome outcome = amended({{Kind::merge, "{limits: {per-ip: {count: 200}}}"},
                                   {Kind::merge, "{limits: {per-ip: {burst: 9}, slow: {burst: 2}}}"}});
  const Loaded& loaded = std::get<Loaded>(outcome);
  EXPECT_EQ(print(*loaded.policy->find("per-ip")->numbers), "200 per 1s, burst 9");
  EXPECT_EQ(print(*loaded.policy->find("slow")->numbers), "1 per 500ms, burst 2");
}

TEST(Amend, SaysWhereItsValuesCameFrom) {
  const Outcome outcome = amended({{Kind::merge, "{limits: {per-ip: {count: 200}}}"}});
  for (const Setting& setting : std::get<Loaded>(outcome).origins) {
    const bool amended_one = setting.path == "limits.per-ip.count";
    if (amended_one || setting.path == "limits.per-ip.period") {
      EXPECT_EQ(setting.origin, amended_one ? "api" : "weir.yaml:3:52");
    }
  }
}

TEST(Amend, AWholePolicyTakesThePlaceOfTheFilesAndLeavesTheProcess) {
  const Outcome outcome = amended({{Kind::replace, "limits: {only: {rate: 1/s}}\nfailure_code: 503\n"}});
  const Loaded& loaded = std::get<Loaded>(outcome);
  ASSERT_EQ(loaded.policy->limits().size(), 1u);
  EXPECT_EQ(loaded.policy->limits()[0].name, "only");
  EXPECT_EQ(loaded.policy->override_count(), 0u);
  EXPECT_EQ(loaded.settings.failure_code, 503);
  EXPECT_EQ(loaded.settings.admin.write_token, "secret") << "a policy without tokens must not open the admin API";
  EXPECT_EQ(text(std::get<Problems>(amended({{Kind::replace, "limits: /etc/passwd\n"}}))),
            "api:1:9: limits must be a map here, not a file\n");
}

TEST(Amend, SecretsInFilesAndVariablesAreRefusedOverTheAdminApi) {
  Options options;
  options.environment["HOME"] = "/root";
  options.read = [](const std::string& path) -> Result<std::string> {
    ADD_FAILURE() << path << " is read";
    return std::string("x");
  };
  options.amendments = {{Kind::replace,
                         "admin:\n  read_token: file:/etc/shadow\nhash_key: env:HOME\n"
                         "access:\n  deny: [{apikey: 'file:/etc/passwd'}]\n"}};
  const Outcome outcome = parse(kFile, "weir.yaml", options);
  ASSERT_TRUE(std::holds_alternative<Problems>(outcome));
  const std::string rule = ": env: and file: are refused over the admin API; send the secret itself\n";
  EXPECT_EQ(text(std::get<Problems>(outcome)),
            "api:2:15: read_token" + rule + "api:3:11: hash_key" + rule + "api:5:19: apikey" + rule);
}

}  // namespace
}  // namespace weir::config::amend_test
