#include "weir/config/envoy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "weir/config/parse.h"
#include "weir/core/query.h"
#include "weir/policy/policy.h"

namespace weir::config::envoy_test {
namespace {

using namespace std::chrono_literals;

// A configuration in weir.yaml, and files that it names.
class Envoy : public testing::Test {
 protected:
  Outcome load(const std::string& yaml) {
    Options options;
    options.read = [this](const std::string& path) -> Result<std::string> {
      const auto found = files_.find(path);
      if (found != files_.end()) return found->second;
      return Error{Fault::unknown, "cannot read the file \"" + path + "\": No such file or directory"};
    };
    options.list = [this](const std::string& path) -> std::optional<std::vector<std::string>> {
      if (!path.ends_with("dir")) return {};
      std::vector<std::string> names;
      for (const auto& [name, text] : files_) {
        if (name.starts_with(path + "/")) names.push_back(name.substr(path.size() + 1));
      }
      return names;
    };
    return parse(yaml, "weir.yaml", options);
  }
  // What is wrong with one file of rules.
  std::string problems_of(const std::string& rules) {
    files_["rules.yaml"] = rules;
    return problems("envoy: [rules.yaml]");
  }
  std::string problems(const std::string& yaml) {
    const Outcome outcome = load(yaml);
    const auto* const found = std::get_if<Problems>(&outcome);
    return found == nullptr ? "" : text(*found);
  }
  void use(const std::string& rules, const std::string& more = "") {
    files_["rules.yaml"] = rules;
    const Outcome outcome = load("envoy: [rules.yaml]\n" + more);
    ASSERT_TRUE(std::holds_alternative<Loaded>(outcome)) << text(std::get<Problems>(outcome));
    loaded_ = std::get<Loaded>(outcome);
  }
  // "KEY=VALUE" each; the buckets that are charged: "key/burst", a window as "key/size per every".
  std::string charged(const std::vector<std::vector<Attribute>>& entries, std::string_view domain = "d") {
    std::vector<Descriptor> list;
    for (const auto& one : entries) list.push_back({one});
    const Query query{Descriptors{domain, list}};
    const auto done = loaded_.policy->resolve(query, Known{}, {Time{10s}, Wall{1000s}}, resolved_);
    if (!done) return done.error().detail;
    std::string out;
    for (const Charge& charge : resolved_.charges()) {
      out += out.empty() ? "" : " ";
      if (charge.rate) out += std::string(charge.rate->key) + "/" + std::to_string(charge.rate->limit.burst());
      if (charge.quota) {
        out += std::string(charge.quota->key) + "/" + std::to_string(charge.quota->quota.size) + " per " +
               std::to_string(charge.quota->quota.every / 1s) + "s";
      }
      if (charge.shadow) out += " shadow";
      if (charge.alternative) out += " alternative";
    }
    return out;
  }

  std::map<std::string, std::string> files_;
  Loaded loaded_;
  Resolved resolved_;
};

constexpr const char* kRules = R"(domain: d
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 10}
  - key: user
    value: bob
    rate_limit: {unit: second, requests_per_unit: 5}
  - key: user
    value: "team-*-x*"
    rate_limit: {unit: hour, requests_per_unit: 7}
  - key: user
    value: "team-*"
    share_threshold: true
    rate_limit: {unit: HOUR, requests_per_unit: 8}
  - key: path
    descriptors:
      - {key: method, value: GET, rate_limit: {unit: day, requests_per_unit: 1000, name: reads}}
      - {key: method, value: POST}
  - key: both
    rate_limit: {unit: second, requests_per_unit: 1}
    descriptors:
      - {key: inner, rate_limit: {unit: second, requests_per_unit: 2}}
)";

TEST_F(Envoy, MatchesAnExactValueThenPatternsInOrderThenTheKeyAlone) {
  use(kRules);
  EXPECT_EQ(charged({{{"user", "bob"}}}), "d.user_bob:global/5");
  EXPECT_EQ(charged({{{"user", "team-a-xy"}}}), "d.user_team-_-x_:team-a-xy/7");
  EXPECT_EQ(charged({{{"user", "team-a"}}}), "d.user_team-_:global/8") << "all of them share one bucket";
  EXPECT_EQ(charged({{{"user", "eve:1%"}}}), "d.user:eve%3A1%25/10");
  EXPECT_EQ(charged({{{"user", ""}}}), "d.user:%/10");
  EXPECT_EQ(charged({{{"other", "x"}}}), "");
  EXPECT_EQ(charged({{{"user", "bob"}}}, "unknown"), "");
}

TEST_F(Envoy, ARuleAppliesOnlyAtItsOwnDepth) {
  use(kRules);
  EXPECT_EQ(charged({{{"path", "/a"}, {"method", "GET"}}}), "reads:/a/1000 per 86400s");
  EXPECT_EQ(charged({{{"path", "/a"}}}), "") << "a level without a rule";
  EXPECT_EQ(charged({{{"path", "/a"}, {"method", "POST"}}}), "") << "listed without a limit: let pass";
  EXPECT_EQ(charged({{{"user", "bob"}, {"method", "GET"}}}), "") << "deeper than the rule";
  EXPECT_EQ(charged({{{"both", "x"}}}), "d.both:x/1");
  EXPECT_EQ(charged({{{"both", "x"}, {"inner", "y"}}}), "d.both.inner:x:y/2");
}

TEST_F(Envoy, KeysAndValuesThatJoinToTheSameTextAreTwoBuckets) {
  use(R"(domain: d
descriptors:
  - {key: a, value: b_c, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: a_b, value: c, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: a_b_c, rate_limit: {unit: second, requests_per_unit: 3}}
)");
  EXPECT_EQ(charged({{{"a", "b_c"}}, {{"a_b", "c"}}, {{"a_b_c", "v"}}}),
            "d.a_b_c:global/1 d.a_b_c-2:global/2 d.a_b_c-3:v/3");
}

TEST_F(Envoy, AReplacedRuleIsNotCharged) {
  use(R"(domain: d
descriptors:
  - {key: ip, rate_limit: {unit: second, requests_per_unit: 1, name: per-ip}}
  - {key: vip, rate_limit: {unit: second, requests_per_unit: 100, replaces: [{name: per-ip}]}}
  - {key: free, rate_limit: {unlimited: true, replaces: [{name: per-ip}]}}
)");
  EXPECT_EQ(charged({{{"ip", "1"}}}), "per-ip:1/1");
  EXPECT_EQ(charged({{{"ip", "1"}}, {{"vip", "x"}}}), "d.vip:x/100");
  EXPECT_EQ(resolved_.descriptors()[0].standing, DescriptorAnswer::Standing::unmatched);
  EXPECT_EQ(charged({{{"ip", "1"}}, {{"free", "x"}}}), "");
  EXPECT_EQ(resolved_.descriptors()[1].standing, DescriptorAnswer::Standing::unlimited);
}

TEST_F(Envoy, ShadowQuotaModeAndNothingPerUnit) {
  use(R"(domain: d
descriptors:
  - {key: s, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: q, quota_mode: true, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: none, rate_limit: {unit: second, requests_per_unit: 0}}
  - {key: much, rate_limit: {unit: second, requests_per_unit: 4294967295}}
)");
  EXPECT_EQ(charged({{{"s", "1"}}, {{"q", "1"}}}), "d.s:1/1 shadow d.q:1/2 alternative");
  ASSERT_EQ(loaded_.warnings.size(), 1u);
  EXPECT_EQ(loaded_.warnings[0], "rules.yaml:6:29: more than 1000000000 per second count as unlimited");
  EXPECT_EQ(charged({{{"much", "1"}}}), "");
  EXPECT_EQ(resolved_.descriptors()[0].standing, DescriptorAnswer::Standing::unlimited);
  EXPECT_EQ(charged({{{"none", "1"}}, {{"q", "1"}}}), "d.q:1/2 alternative");
  ASSERT_NE(resolved_.blocked(), nullptr);
  EXPECT_TRUE(resolved_.charges()[0].peeks) << "nothing is taken from the others";
}

TEST_F(Envoy, CountsAsTheFileSaysOrByTheUnit) {
  files_["rules.yaml"] = R"(domain: d
descriptors:
  - {key: s, rate_limit: {unit: second, requests_per_unit: 5, unit_multiplier: 30}}
  - {key: y, rate_limit: {unit: year, requests_per_unit: 5}}
)";
  const auto with = [&](const std::string& algorithm, const std::string& more) {
    const Outcome outcome = load("envoy: [{path: rules.yaml" + algorithm + "}]\n" + more);
    if (const auto* const found = std::get_if<Problems>(&outcome)) return text(*found);
    loaded_ = std::get<Loaded>(outcome);
    return charged({{{"s", "1"}}, {{"y", "1"}}});
  };
  EXPECT_EQ(with("", ""), "d.s:1/5 d.y:1/5 per 31536000s");
  EXPECT_EQ(with(", algorithm: fixed_window", ""), "d.s:1/5 per 30s d.y:1/5 per 31536000s");
  EXPECT_EQ(with(", algorithm: token_bucket", ""), "d.s:1/5 d.y:1/5");
  EXPECT_EQ(with(", algorithm: token_bucket", "store: redis"), "d.s:1/5 d.y:1/5 per 31536000s");
}

TEST_F(Envoy, AnOverrideAndALimitByDescriptorJoin) {
  use(kRules, "overrides: {'d.user:eve': {count: 99}}\nlimits: {tenant: {key: descriptor:user, rate: 3/s}}\n");
  EXPECT_EQ(charged({{{"user", "eve"}}}), "d.user:eve/99 tenant:eve/3");
  ASSERT_EQ(resolved_.joins().size(), 1u);
  EXPECT_EQ(resolved_.joins()[0].descriptor, 0u);
  EXPECT_EQ(charged({{{"other", "x"}}, {{"user", "eve"}}}, "unknown"), "tenant:eve/3");
  EXPECT_EQ(resolved_.joins()[0].descriptor, 1u);
}

TEST_F(Envoy, ADescriptorMayBringItsOwnNumbers) {
  use(kRules);
  const std::vector<Attribute> entries = {{"user", "bob"}, {"x", "y:z"}};
  const auto own = [&](Count count, Duration period) {
    const std::vector<Descriptor> list = {{entries, 1, false, OwnNumbers{count, period}}};
    EXPECT_TRUE(loaded_.policy->resolve({Descriptors{"d", list}}, Known{}, {Time{10s}, Wall{1000s}}, resolved_));
  };
  own(42, 1s);
  ASSERT_EQ(resolved_.charges().size(), 1u);
  EXPECT_EQ(resolved_.charges()[0].rate->key, "d.own:user:bob:x:y%3Az");
  EXPECT_EQ(resolved_.charges()[0].rate->limit.burst(), 42);
  own(42, std::chrono::days{365});
  EXPECT_EQ(resolved_.charges()[0].quota->quota.every, std::chrono::days{365});
  own(0, 1s);
  EXPECT_NE(resolved_.blocked(), nullptr);
}

TEST_F(Envoy, ADirectoryMeansItsYamlFiles) {
  files_["dir/a.yaml"] = "domain: a\ndescriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 1}}]\n";
  files_["dir/b.yml"] = "domain: b\ndescriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 2}}]\n";
  files_["dir/..data"] = "not yaml: [";
  files_["dir/.hidden.yaml"] = "not yaml: [";
  files_["dir/notes.txt"] = "not yaml: [";
  const Outcome outcome = load("envoy: [dir]");
  ASSERT_TRUE(std::holds_alternative<Loaded>(outcome)) << text(std::get<Problems>(outcome));
  loaded_ = std::get<Loaded>(outcome);
  EXPECT_EQ(charged({{{"k", "1"}}}, "a"), "a.k:1/1");
  EXPECT_EQ(charged({{{"k", "1"}}}, "b"), "b.k:1/2");
}

TEST_F(Envoy, ADomainOfTwoFilesMustBeMergedOnPurpose) {
  files_["dir/a.yaml"] = "domain: d\ndescriptors: [{key: a, rate_limit: {unit: second, requests_per_unit: 1}}]\n";
  files_["dir/b.yaml"] = "domain: d\ndescriptors: [{key: b, rate_limit: {unit: second, requests_per_unit: 2}}]\n";
  EXPECT_EQ(problems("envoy: [dir]"),
            "dir/b.yaml:1:9: domain \"d\" is already at dir/a.yaml:1:9; merge_domains: true merges them\n");
  const Outcome outcome = load("{envoy: [dir], merge_domains: true}");
  loaded_ = std::get<Loaded>(outcome);
  EXPECT_EQ(charged({{{"a", "1"}}, {{"b", "1"}}}), "d.a:1/1 d.b:1/2");
}

TEST_F(Envoy, RefusesWhatTheServiceRefusesWithFileAndLine) {
  EXPECT_EQ(problems("envoy: [missing.yaml]"),
            "weir.yaml:1:9: envoy: cannot read the file \"missing.yaml\": No such file or directory\n");
  EXPECT_EQ(problems_of("descriptors: []"), "rules.yaml:1:1: the file must have a domain\n");
  EXPECT_EQ(problems_of("domain: ''"), "rules.yaml:1:9: the file must have a domain\n");
  EXPECT_EQ(problems_of("domain: d\ndescriptors: [{value: v}]"), "rules.yaml:2:15: a descriptor must have a key\n");
  EXPECT_EQ(problems_of("domain: d\ndescriptors:\n- {ket: a}\n"),
            "rules.yaml:3:4: unknown key \"ket\"; did you mean \"key\"?\n");
  EXPECT_EQ(problems_of("domain: d\ndescriptors: [a]"), "rules.yaml:2:15: a descriptor must be a map\n");
  EXPECT_EQ(problems_of("domain: d\ndescriptors: {key: a}"), "rules.yaml:2:14: descriptors must be a list of maps\n");
  EXPECT_EQ(problems_of("domain: d\ndescriptors:\n- {key: a, value: b}\n- {key: a, value: b}\n"),
            "rules.yaml:4:3: the descriptor with key \"a\" and value \"b\" is written twice; the first is at "
            "rules.yaml:3:3\n");
  const auto rule = [this](const std::string& text) {
    return problems_of("domain: d\ndescriptors:\n- key: a\n  rate_limit: {" + text + "}\n");
  };
  EXPECT_EQ(rule("unit: fortnight, requests_per_unit: 1"),
            "rules.yaml:4:22: unit \"fortnight\" must be second, minute, hour, day, week, month or year\n");
  EXPECT_EQ(rule("requests_per_unit: 1"),
            "rules.yaml:4:15: rate_limit must have a unit: second, minute, hour, day, week, month or year\n");
  EXPECT_EQ(rule("unlimited: true, unit: day"),
            "rules.yaml:4:39: a rate_limit that is unlimited must not have a unit\n");
  EXPECT_EQ(rule("unit: day, requests_per_unit: -1"),
            "rules.yaml:4:46: requests_per_unit \"-1\" must be a whole number from 0 to 4294967295\n");
  EXPECT_EQ(rule("unit: day, requests_per_unit: 4294967296"),
            "rules.yaml:4:46: requests_per_unit \"4294967296\" must be a whole number from 0 to 4294967295\n");
  EXPECT_EQ(rule("unit: day, requests_per_unit: 1, replaces: [{name: ''}]"),
            "rules.yaml:4:60: an entry of replaces must have a name\n");
  EXPECT_EQ(rule("unit: day, requests_per_unit: 1, name: n, replaces: [{name: n}]"),
            "rules.yaml:4:69: replaces: \"n\" is the name of this rate_limit itself\n");
  EXPECT_EQ(rule("unit: day, requests_per_unit: 1, unlimited: maybe"),
            "rules.yaml:4:60: unlimited \"maybe\" must be true or false\n");
  EXPECT_EQ(rule("unit: day, unit: day"),
            "rules.yaml:4:27: key \"unit\" is written twice; the first is at rules.yaml:4:16\n");
}

TEST_F(Envoy, RefusesTraitsThatCannotBeAlsoWithoutARateLimit) {
  const auto with = [this](const std::string& text) {
    return problems_of("domain: d\ndescriptors:\n- key: a\n  value: b\n  " + text + "\n");
  };
  EXPECT_EQ(with("share_threshold: true"), "rules.yaml:5:20: share_threshold needs a value with *\n");
  EXPECT_EQ(with("share_threshold: false"), "");
  EXPECT_EQ(with("shadow_mode: maybe"), "rules.yaml:5:16: shadow_mode \"maybe\" must be true or false\n");
  EXPECT_EQ(with("quota_mode: 1"), "rules.yaml:5:15: quota_mode \"1\" must be true or false\n");
  EXPECT_EQ(with("detailed_metric: \"true\""), "rules.yaml:5:20: detailed_metric \"true\" must be true or false\n");
  EXPECT_EQ(with("value_to_metric: []"), "rules.yaml:5:20: value_to_metric \"\" must be true or false\n");
  EXPECT_EQ(with("metadata: [a]"), "rules.yaml:5:13: metadata must be a map\n");
}

TEST_F(Envoy, LongNamesAreCutAndStayApart) {
  const std::string key(100, 'k');
  use("domain: d\ndescriptors:\n- {key: " + key + ", rate_limit: {unit: second, requests_per_unit: 1}}\n- {key: " +
      key + "x, rate_limit: {unit: second, requests_per_unit: 2}}\n");
  const std::string first = charged({{{key, "v"}}});
  EXPECT_EQ(first.find(':'), bounds::name_bytes_max);
  EXPECT_NE(first.substr(0, bounds::name_bytes_max), charged({{{key + "x", "v"}}}).substr(0, bounds::name_bytes_max));
}

TEST_F(Envoy, ALongIdBecomesItsHash) {
  use(kRules);
  const std::string longest(bounds::id_bytes_max, ':');
  const std::string id = charged({{{"both", longest}, {"inner", longest}}});
  EXPECT_TRUE(id.starts_with("d.both.inner:%sha256-")) << id;
}

TEST_F(Envoy, MoreDescriptorsThanTheBoundAreRefused) {
  use(kRules);
  std::vector<std::vector<Attribute>> many(bounds::descriptors_max, {{"user", "bob"}});
  EXPECT_EQ(charged(many), "d.user_bob:global/5");
  many.push_back({{"user", "bob"}});
  EXPECT_EQ(charged(many), "65 descriptors are given; at most 64 can be");
}

}  // namespace
}  // namespace weir::config::envoy_test
