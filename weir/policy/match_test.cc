#include "weir/policy/match.h"

#include <gtest/gtest.h>

#include "weir/config/describe.h"
#include "weir/config/diff.h"
#include "weir/config/parse.h"

namespace weir::match_test {
namespace {

using Attributes = std::vector<Attribute>;

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

bool path_matches(std::string_view pattern, std::string_view path) {
  return PathPattern::parse(pattern)->matches(path);
}

bool host_matches(std::string_view pattern, std::string_view host) {
  return HostPattern::parse(pattern)->matches(host);
}

// Prints the charges of a request: "in-order signin: per-ip:1.2.3.4 x1, …", or the error.
std::string charges(const Policy& policy, const Attributes& attributes, std::optional<Count> cost = {}) {
  Resolved out;
  if (const Result<void> result = policy.resolve({RequestFacts{attributes, {}, cost}}, Known{}, {}, out); !result) {
    return std::string(result.error().word) + ": " + result.error().detail;
  }
  std::string line = out.order() == Order::in_order ? "in-order " : "";
  line += out.route() == nullptr ? "-" : out.route()->name;
  if (out.blocked() != nullptr) line += " blocked by " + out.blocked()->limit->name;
  if (out.impossible()) line += " impossible";
  for (const Charge& charge : out.charges()) {
    line += ' ' + std::string(charge.rate->key) + "x" + std::to_string(charge.cost) + (charge.shadow ? "shadow" : "");
  }
  return line;
}

TEST(PathPattern, AStarIsOneSegmentAndTwoAreTheRest) {
  EXPECT_TRUE(path_matches("/signin", "/signin"));
  EXPECT_FALSE(path_matches("/signin", "/signin/"));
  EXPECT_FALSE(path_matches("/signin", "/signin2"));
  EXPECT_TRUE(path_matches("/users/*/orders", "/users/7/orders"));
  EXPECT_FALSE(path_matches("/users/*/orders", "/users/7/8/orders"));
  EXPECT_FALSE(path_matches("/users/*", "/users/"));
  EXPECT_FALSE(path_matches("/users/*", "/users"));
  EXPECT_FALSE(path_matches("/users/*", "/users/7/orders"));
  EXPECT_TRUE(path_matches("/api/**", "/api/v1/users"));
  EXPECT_TRUE(path_matches("/api/**", "/api/"));
  EXPECT_TRUE(path_matches("/api/**", "/api"));
  EXPECT_FALSE(path_matches("/api/**", "/apix"));
  EXPECT_TRUE(path_matches("/**", "/"));
  EXPECT_TRUE(path_matches("/*/b/**", "/a/b/c/d"));
  EXPECT_TRUE(path_matches("/", "/"));
  EXPECT_TRUE(path_matches("/a/../sign%69n", "/signin")) << "patterns are normalised too";
}

TEST(PathPattern, KnowsWhatEveryPathThatMatchesBeginsWith) {
  const auto prefix = [](std::string_view pattern) { return std::string(PathPattern::parse(pattern)->prefix()); };
  EXPECT_EQ(prefix("/a/b"), "/a/b");
  EXPECT_EQ(prefix("/a/*/b"), "/a/");
  EXPECT_EQ(prefix("/a/**"), "/a");
  EXPECT_EQ(prefix("/**"), "");
  EXPECT_EQ(PathPattern().prefix(), "");
}

TEST(HostPattern, AStarAtTheStartIsOneLabelOrMore) {
  EXPECT_TRUE(host_matches("Example.com", "example.com"));
  EXPECT_FALSE(host_matches("example.com", "www.example.com"));
  EXPECT_TRUE(host_matches("*.example.com", "www.example.com"));
  EXPECT_TRUE(host_matches("*.example.com", "a.b.example.com"));
  EXPECT_FALSE(host_matches("*.example.com", "example.com"));
  EXPECT_FALSE(host_matches("*.example.com", ".example.com"));
  EXPECT_FALSE(host_matches("*.example.com", "badexample.com"));
  EXPECT_TRUE(host_matches("*", "anything"));
  EXPECT_FALSE(host_matches("*", ""));
  EXPECT_TRUE(HostPattern().matches(""));
}

TEST(Routes, TheFirstThatMatchesWins) {
  const auto policy = make(R"(
limits: {a: {key: global, rate: 1/s}}
routes:
  - {name: beta, match: {path: /signin, headers: {X-Beta: "1"}}, limits: [a]}
  - {name: post, match: {path: /signin, methods: [post, PUT], host: "*.example.com"}, limits: [a]}
  - {name: any, match: {path: "/*"}, limits: [a]}
  - {name: never, match: {path: /signin}, limits: [a]}
  - {name: root, match: {path: /}, limits: none}
)");
  const auto route = [&](const Attributes& attributes) { return charges(*policy, attributes); };
  EXPECT_EQ(route({{"path", "/signin"}, {"header:x-beta", "0"}, {"header:x-beta", "1"}}), "beta a:globalx1");
  EXPECT_EQ(route({{"path", "/signin?x"}, {"method", "POST"}, {"host", "www.Example.com:80"}}), "post a:globalx1");
  EXPECT_EQ(route({{"path", "/signin"}, {"method", "POST"}, {"host", "example.com"}}), "any a:globalx1");
  EXPECT_EQ(route({{"path", "/./sign%69n"}, {"method", "GET"}}), "any a:globalx1");
  EXPECT_EQ(route({{"path", "/a/.."}}), "root");
  EXPECT_EQ(route({{"path", "/a/b"}}), "-") << "no route, no limit";
}

TEST(Routes, WithoutThemEveryLimitThatHasAKeyApplies) {
  const auto policy = make(
      "limits: {a: {key: ip, rate: 1/s}, b: {rate: 1/s}, c: {key: header:x, rate: 1/s}, d: {key: method, rate: 1/s, "
      "mode: off}}");
  EXPECT_EQ(charges(*policy, {{"ip", "1.2.3.4"}, {"header:x", "y"}, {"method", "GET"}}), "- a:1.2.3.4x1 c:yx1");
  EXPECT_EQ(charges(*policy, {{"path", "/"}}), "-");
}

TEST(Routes, SayWhichLimitsInWhichOrderHowAndHowMuch) {
  const auto policy = make(R"(
limits:
  per-ip: {key: ip, rate: 20/s, number: 7}
  session: {key: cookie:idx, rate: 5/s, per_route: true}
  secret: {key: header:x, rate: 5/s, hashed: true, per_route: true}
  trial: {key: global, rate: 5/s, mode: shadow}
routes:
  - {name: one, match: {path: /one}, limits: [session, per-ip], charge: in-order, cost: 3}
  - {name: two, match: {path: /two}, limits: [per-ip, trial], mode: shadow, cost: header:X-Cost}
  - {name: off, match: {path: /off}, limits: [per-ip], mode: off}
  - {name: hash, match: {path: /hash}, limits: [secret]}
  - {name: all, match: {path: /all}}
)");
  const auto at = [&](std::string_view path, Attributes more = {}) {
    more.insert(more.end(), {{"path", path}, {"ip", "1.2.3.4"}, {"header:cookie", "idx=s"}});
    return charges(*policy, more);
  };
  EXPECT_EQ(at("/one"), "in-order one session@one:sx3 7:1.2.3.4x3");
  EXPECT_EQ(at("/two"), "two 7:1.2.3.4x1shadow trial:globalx1shadow");
  EXPECT_EQ(at("/two", {{"header:x-cost", "4"}, {"header:x-cost", "2"}}), "two 7:1.2.3.4x4shadow trial:globalx4shadow");
  for (const std::string_view bad : {"0", "-1", "1.5", "x", "", "99999999999999999999"}) {
    EXPECT_TRUE(at("/two", {{"header:x-cost", bad}}).starts_with("bad_value: header x-cost:")) << bad;
  }
  EXPECT_EQ(at("/off"), "off");
  EXPECT_TRUE(at("/hash", {{"header:x", "v"}}).starts_with("hash secret@hash:"));
  EXPECT_EQ(at("/hash", {{"header:x", "v"}}).find(":v"), std::string::npos);
  EXPECT_EQ(at("/all"), "all 7:1.2.3.4x1 session@all:sx1 trial:globalx1shadow");
}

TEST(Routes, ACallersCostReplacesTheRoutes) {
  const auto policy =
      make("limits: {a: {key: global, rate: 5/s}}\nroutes: [{name: r, match: {path: /}, cost: header:x, limits: a}]");
  EXPECT_EQ(charges(*policy, {{"path", "/"}, {"header:x", "4"}}, 2), "r a:globalx2");
}

TEST(Routes, AMissingKeySkipsTheLimitOrIsAnError) {
  const auto policy =
      make("limits: {a: {key: [header:x, path:2], rate: 5/s}, b: {key: [header:y, ip], rate: 5/s, missing: reject}}\n");
  EXPECT_EQ(charges(*policy, {{"header:y", "1"}, {"ip", "1.2.3.4"}, {"header:x", "1"}}), "- b:1:1.2.3.4x1");
  EXPECT_EQ(charges(*policy, {{"header:y", "1"}}), "missing_key: limit \"b\": the request has no ip")
      << "only what is missing is named";
  EXPECT_EQ(charges(*policy, {{"ip", "1.2.3.4"}}), "missing_key: limit \"b\": the request has no header:y");
  EXPECT_EQ(charges(*policy, {{"path", "/"}}), "missing_key: limit \"b\": the request has no header:y, ip");
}

TEST(Routes, ARequestThatMayLackKeysIsNotRefused) {
  const auto policy = make("limits: {a: {key: ip, rate: 5/s}, b: {key: header:y, rate: 5/s, missing: reject}}\n");
  const Attributes attributes = {{"ip", "1.2.3.4"}};
  Resolved out;
  const RequestFacts facts{.attributes = attributes, .may_lack_keys = true};
  ASSERT_TRUE(policy->resolve({facts, Mode::peek}, Known{}, {}, out));
  ASSERT_EQ(out.charges().size(), 1u);
  EXPECT_EQ(out.charges()[0].rate->key, "a:1.2.3.4");
}

TEST(Routes, IdsOfARequestAreCheckedByTheirFormat) {
  const auto policy = make(R"(
limits:
  account: {key: header:account, rate: 5/s, id: regId}
  pair: {key: [header:account, header:note], rate: 5/s, id: regId:text}
)");
  EXPECT_EQ(charges(*policy, {{"header:account", "007"}, {"header:note", "a:b"}}), "- account:7x1 pair:7:a%3Abx1");
  EXPECT_TRUE(charges(*policy, {{"header:account", "x"}}).starts_with(": limit \"account\": \"x\" is not a regId"));
}

TEST(Routes, AShadowLimitRefusesNoRequest) {
  const auto policy = make(R"(
limits:
  missing: {key: header:x, rate: 5/s, missing: reject, mode: shadow}
  account: {key: header:account, rate: 5/s, id: regId, missing: reject}
routes:
  - {name: strict, match: {path: /strict}, limits: [missing, account]}
  - {name: trial, match: {path: /trial}, limits: [missing, account], mode: shadow}
)");
  EXPECT_EQ(charges(*policy, {{"path", "/strict"}, {"header:account", "7"}}), "strict account:7x1");
  EXPECT_EQ(charges(*policy, {{"path", "/strict"}}),
            "missing_key: limit \"account\": the request has no header:account");
  EXPECT_EQ(charges(*policy, {{"path", "/trial"}}), "trial");
  EXPECT_EQ(charges(*policy, {{"path", "/trial"}, {"header:account", "x"}}), "trial") << "not a regId";
  EXPECT_EQ(charges(*policy, {{"path", "/trial"}, {"header:account", "7"}, {"header:account", "8"}}), "trial")
      << "two values";
}

TEST(Routes, AVeryLongIdIsCountedByItsHash) {
  const auto policy = make("limits: {a: {key: [header:x, header:y], rate: 5/s}}");
  const std::string colons(256, ':');
  EXPECT_TRUE(charges(*policy, {{"header:x", colons}, {"header:y", colons}}).starts_with("- a:%sha256-"));
}

TEST(Routes, OverridesOfAnAddressCountForRequests) {
  const auto policy = make(R"(
limits: {per-ip: {key: ip, rate: 5/s}, tenant: {key: header:t, rate: 5/s}}
overrides: {per-ip:10.20.0.0/16: {unlimited: true}, tenant:bad: {blocked: true}, "per-ip:2001:db8::/64": {rate: 9/s}}
)");
  EXPECT_EQ(charges(*policy, {{"ip", "10.20.3.4"}, {"header:t", "good"}}), "- tenant:goodx1");
  EXPECT_EQ(charges(*policy, {{"ip", "10.21.3.4"}, {"header:t", "bad"}}), "- blocked by tenant");
  EXPECT_EQ(charges(*policy, {{"ip", "2001:db8::9"}}), "- per-ip:2001:db8::/64x1");
}

TEST(Routes, ACostThatCanNeverPassIsKnownBeforeAnythingIsCharged) {
  const auto policy = make(R"(
limits: {a: {key: global, rate: 5/s}, b: {key: ip, rate: 3/s}, c: {key: ip, rate: 2/s, mode: shadow}}
routes: [{name: r, match: {}, limits: [a, b, c], charge: in-order, cost: header:x}]
)");
  EXPECT_EQ(charges(*policy, {{"ip", "1.2.3.4"}, {"header:x", "3"}}),
            "in-order r a:globalx3 b:1.2.3.4x3 c:1.2.3.4x3shadow");
  EXPECT_EQ(charges(*policy, {{"ip", "1.2.3.4"}, {"header:x", "4"}}),
            "in-order r impossible a:globalx4 b:1.2.3.4x4 c:1.2.3.4x4shadow");
}

TEST(Routes, TheClientBehindATrustedProxyIsCounted) {
  const auto policy =
      make("limits: {a: {key: ip, rate: 5/s}}\naccess: {trusted_proxies: [10.0.0.0/8], ipv6_prefix: 56}");
  const auto from = [&](std::string_view peer) {
    return charges(*policy, {{"peer", peer}, {"header:x-forwarded-for", "6.6.6.6, 2001:db8::1"}});
  };
  EXPECT_EQ(from("10.1.2.3"), "- a:2001:db8::/56x1");
  EXPECT_EQ(from("11.1.2.3"), "- a:11.1.2.3x1");
}

TEST(Routes, AreDescribedAndComparedInWords) {
  const auto load = [](std::string_view routes) {
    return std::get<config::Loaded>(
        config::parse("limits: {a: {key: ip, rate: 1/s}}\nroutes: [" + std::string(routes) + "]", "t.yaml", {}));
  };
  const config::Loaded before = load(
      "{name: x, match: {path: /x, methods: [GET, POST], host: h, headers: {B: '1'}}, limits: a, charge: in-order}, "
      "{name: y, match: {path: /y}, limits: none}, {name: z, match: {}}");
  EXPECT_EQ(config::describe_routes(*before.policy)[0].match, "GET|POST h/x, b: 1");
  const config::Loaded after = load(
      "{name: y, match: {path: /y}, limits: a, cost: 2}, {name: x, match: {path: /x, methods: [GET, POST], host: h, "
      "headers: {B: '1'}}, limits: a, charge: in-order}");
  std::string changes;
  for (const config::Change& change : config::diff(before, after)) changes += change.text() + "\n";
  EXPECT_EQ(changes,
            "changed route y: /y: none -> /y: a; cost 2\n"
            "removed route z: /**: every limit with a key\n"
            "changed order of routes: x, y -> y, x\n");
}

}  // namespace
}  // namespace weir::match_test
