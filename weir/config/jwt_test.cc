// Limits keyed by the claims of a token; how tokens are verified is in identify/jwt_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <variant>

#include "weir/config/parse.h"

namespace weir::config::jwt_test {
namespace {

using namespace std::chrono_literals;

// HS256 under "secret": {"sub":"a:1","org":{"id":7},"exp":4000000000}, and one that expired in 1970.
constexpr const char* kGood =
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhOjEiLCJvcmciOnsiaWQiOjd9LCJleHAiOjQwMDAwMDAwMDB9.N0XBS6m_sogzRzgu1M"
    "l-qe0lGEW-TK3cr9KaYDThObk";
constexpr const char* kExpired =
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhOjEiLCJleHAiOjF9.DmUZURmnEC"
    "knHf-GxXVTcbLBxueJwpJC8-nlMJw58zc";
constexpr const char* kEcKey =
    R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
    R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})";
constexpr Now kNow{Time{10s}, Wall{1'700'000'000s}};

class JwtPolicy : public testing::Test {
 protected:
  Outcome load(const std::string& text) {
    options_.jwt_counts = counts_;
    options_.read = [this](const std::string& path) -> Result<std::string> {
      const auto found = files_.find(path);
      if (found == files_.end()) return Error{Fault::unknown, "cannot read the file \"" + path + "\""};
      return found->second;
    };
    return parse(text, "weir.yaml", options_);
  }
  std::string refusal(const std::string& text) {
    const Outcome outcome = load(text);
    const auto* const problems = std::get_if<Problems>(&outcome);
    return problems == nullptr || problems->empty() ? "" : problems->front().sentence;
  }
  // The keys of the buckets that a request with this header is charged to.
  std::string charged(const Loaded& loaded, std::string_view name, const std::string& value) {
    const std::array<Attribute, 3> attributes{Attribute{"ip", "192.0.2.1"}, {"path", "/"}, {name, value}};
    const Query query{RequestFacts{attributes}};
    Resolved resolved;
    const Result<void> done = loaded.policy->resolve(query, Known{}, kNow, resolved);
    if (!done) return done.error().detail;
    std::string keys;
    for (const Charge& charge : resolved.charges()) keys += (keys.empty() ? "" : " ") + std::string(charge.rate->key);
    return keys;
  }
  std::string charged(const Loaded& loaded, const std::string& value) {
    return charged(loaded, "header:authorization", value);
  }

  Options options_;
  std::map<std::string, std::string> files_;
  std::shared_ptr<JwtCounts> counts_ = std::make_shared<JwtCounts>();
};

TEST_F(JwtPolicy, AClaimOfAVerifiedTokenIsTheIdAndAnyOtherTokenIsNone) {
  const Outcome outcome = load(
      "jwt: {secret: secret}\n"
      "limits: {user: {key: jwt:sub, rate: 1/s}, org: {key: [jwt:org.id, ip], rate: 1/s}}\n");
  const Loaded& loaded = std::get<Loaded>(outcome);
  EXPECT_EQ(charged(loaded, std::string("Bearer ") + kGood), "user:a%3A1 org:7:192.0.2.1");
  EXPECT_EQ(charged(loaded, std::string("Bearer ") + kExpired), "");
  EXPECT_EQ(charged(loaded, "Bearer garbage"), "");
  EXPECT_EQ(charged(loaded, "Basic garbage"), "");
  EXPECT_EQ(charged(loaded, "header:x-other", kGood), "");
  EXPECT_EQ(counts_->of(JwtReason::expired), 1u);
  EXPECT_EQ(counts_->of(JwtReason::malformed), 1u);
  ASSERT_EQ(loaded.warnings.size(), 1u);
  EXPECT_EQ(loaded.warnings[0],
            "requests are limited only by credentials, and requests without valid ones are skipped: a garbage token "
            "bypasses every limit; add a limit by ip, or missing: reject");
}

TEST_F(JwtPolicy, OnlyALimitThatDeniesProtectsFromGarbageTokens) {
  const auto warnings = [&](const std::string& other, const std::string& routes) {
    const Outcome outcome =
        load("jwt: {secret: secret}\nlimits: {user: {key: jwt:sub, rate: 1/s}, other: " + other + "}\n" + routes);
    return std::get<Loaded>(outcome).warnings.size();
  };
  EXPECT_EQ(warnings("{key: ip, rate: 1/s}", ""), 0u);
  EXPECT_EQ(warnings("{key: ip, rate: 1/s, mode: shadow}", ""), 1u);
  EXPECT_EQ(warnings("{key: jwt:sub, rate: 1/s, missing: reject, mode: shadow}", ""), 1u);
  EXPECT_EQ(warnings("{key: ip, rate: 1/s}", "routes: [{name: r, match: {}}, {name: s, match: {}, limits: user}]"), 1u);
  EXPECT_EQ(warnings("{key: ip, rate: 1/s}", "routes: [{name: r, match: {}, limits: user, mode: shadow}]"), 0u);
}

TEST_F(JwtPolicy, ALimitMayRejectRequestsWithoutAValidToken) {
  const Outcome outcome = load("jwt: {secret: secret}\nlimits: {user: {key: jwt:sub, rate: 1/s, missing: reject}}\n");
  EXPECT_TRUE(std::get<Loaded>(outcome).warnings.empty());
  EXPECT_EQ(charged(std::get<Loaded>(outcome), "Bearer garbage"), "limit \"user\": the request has no jwt:sub");
  EXPECT_EQ(charged(std::get<Loaded>(outcome), std::string("Bearer ") + kGood), "user:a%3A1");
}

TEST_F(JwtPolicy, TheTokenMayComeFromAHeaderOrACookie) {
  const std::string limits = "limits: {user: {key: jwt:sub, rate: 1/s}}\n";
  const Outcome header = load("jwt: {secret: secret, header: X-Token}\n" + limits);
  EXPECT_EQ(charged(std::get<Loaded>(header), "header:x-token", kGood), "user:a%3A1");
  EXPECT_EQ(charged(std::get<Loaded>(header), std::string("Bearer ") + kGood), "");
  const Outcome cookie = load("jwt: {secret: secret, cookie: session}\n" + limits);
  EXPECT_EQ(charged(std::get<Loaded>(cookie), "header:cookie", std::string("a=b; session=") + kGood), "user:a%3A1");
}

TEST_F(JwtPolicy, ABadKeyFileIsRefusedAtTheStartAndKeepsTheKeysInForceLater) {
  const std::string text = "jwt: {keys: keys.json}\nlimits: {user: {key: jwt:sub, rate: 1/s, missing: reject}}\n";
  EXPECT_EQ(refusal(text), "keys: cannot read the file \"keys.json\"");
  files_["keys.json"] = R"({"keys":[{"kty":"oct","k":"AA"}]})";
  EXPECT_EQ(refusal(text), "keys: the file \"keys.json\": keys[0]: an oct key is a shared secret; use jwt.secret");
  files_["keys.json"] = kEcKey;
  const Outcome first = load(text);
  options_.jwt_keys = std::get<Loaded>(first).jwt_keys;
  EXPECT_EQ(options_.jwt_keys.keys().size(), 1u);
  files_["keys.json"] = "";
  const Outcome second = load(text);
  ASSERT_TRUE(std::holds_alternative<Loaded>(second));
  EXPECT_EQ(std::get<Loaded>(second).jwt_keys.keys().size(), 1u);
  ASSERT_EQ(std::get<Loaded>(second).warnings.size(), 1u);
  EXPECT_TRUE(std::get<Loaded>(second).warnings[0].ends_with("; keeping the keys in force"));
  EXPECT_EQ(counts_->key_failures(), 3u);
}

TEST_F(JwtPolicy, AClaimNeedsSomethingToVerifyTokensWith) {
  EXPECT_EQ(refusal("limits: {user: {key: jwt:sub, rate: 1/s}}"),
            "jwt:sub needs jwt.keys or jwt.secret to verify tokens with");
  EXPECT_EQ(refusal("jwt: {secret: s}\nlimits: {user: {key: 'jwt:', rate: 1/s}}"),
            "key \"jwt:\" must name a claim after the colon, without spaces");
  EXPECT_NE(refusal("jwt: {secret: s, leeway: 6m}\nlimits: {}").find("leeway"), std::string::npos);
}

}  // namespace
}  // namespace weir::config::jwt_test
