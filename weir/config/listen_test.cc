#include "weir/config/listen.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/config/describe.h"
#include "weir/config/diff.h"
#include "weir/config/parse.h"

namespace weir::config::listen_test {
namespace {

std::string record(std::string_view text) {
  const Result<std::string> place = canonical_address(text);
  return place ? *place : place.error().detail;
}

TEST(Listen, OnePlaceHasOneSpelling) {
  EXPECT_EQ(record("127.0.0.1:8080"), "127.0.0.1:8080");
  EXPECT_EQ(record("localhost:8080"), "127.0.0.1:8080");
  EXPECT_EQ(record("0.0.0.0:0"), "0.0.0.0:0");
  EXPECT_EQ(record(":8080"), "0.0.0.0:8080");
  EXPECT_EQ(record("[0:0::1]:080"), "[::1]:80");
  EXPECT_EQ(record("unix:/run/weir.sock"), "unix:/run/weir.sock");
}

TEST(Listen, WhatIsNoAddressIsToldWhy) {
  EXPECT_EQ(record("8080"), "address \"8080\" has no port: write host:port or unix:/path");
  EXPECT_EQ(record("127.0.0.1:"), "address \"127.0.0.1:\" needs a port from 0 to 65535");
  EXPECT_EQ(record("127.0.0.1:65536"), "address \"127.0.0.1:65536\" needs a port from 0 to 65535");
  EXPECT_EQ(record("127.0.0.1:-1"), "address \"127.0.0.1:-1\" needs a port from 0 to 65535");
  EXPECT_EQ(record("::1:80"), "address \"::1:80\" is ambiguous: write an IPv6 address in brackets, [::1]:8080");
  EXPECT_EQ(record("[]:80"), "address \"[]:80\" needs an IP address before the port");
  EXPECT_EQ(record("example.com:80"), "address \"example.com:80\" needs an IP address before the port");
  EXPECT_EQ(record("unix:"), "address \"unix:\" has no path after unix:");
}

TEST(Listen, APathIsAsLongAsTheKernelAllows) {
  EXPECT_TRUE(canonical_address("unix:/" + std::string(106, 'x')));
  EXPECT_FALSE(canonical_address("unix:/" + std::string(107, 'x')));
}

std::string problems(const std::string& yaml) {
  const Outcome outcome = parse(yaml, "t.yaml", {});
  const Problems* const record = std::get_if<Problems>(&outcome);
  return record == nullptr ? "" : text(*record);
}

TEST(Listen, TakesAsManyCertificatesAsTheServerDoes) {
  std::string tls = "{cert: c, key: k}";
  for (std::size_t i = 1; i < bounds::listener_certificates_max; ++i) tls += ", {cert: c, key: k}";
  const std::string start = "listen: [{address: '127.0.0.1:1', speak: http, tls: [";
  EXPECT_EQ(problems(start + tls + "]}]"), "");
  EXPECT_EQ(problems(start + tls + ", {cert: c, key: k}]}]"),
            "t.yaml:1:53: tls has 257 certificates, at most 256 are possible\n");
}

std::string listening(Environment environment, const std::string& yaml = "limits: {}") {
  Options options;
  options.environment = std::move(environment);
  const Outcome outcome = parse(yaml, "t.yaml", options);
  if (const auto* const record = std::get_if<Problems>(&outcome)) return text(*record);
  std::string out;
  for (const Listener& listener : std::get<Loaded>(outcome).settings.listen) {
    out += (out.empty() ? "" : " ") + listener.speak.front() + "=" + listener.address;
  }
  return out;
}

TEST(ListenVariables, SetTheAddressOfTheListenerThatSpeaksTheProtocol) {
  EXPECT_EQ(listening({{"WEIR_LISTEN_HTTP", ":80"}, {"WEIR_LISTEN_RESP", "10.0.0.1:6379"}}),
            "http=0.0.0.0:80 resp=10.0.0.1:6379 admin=127.0.0.1:9090");
  const std::string yaml = "listen: [{address: '127.0.0.1:1', speak: [http, grpc], idle_timeout: 1s}]";
  EXPECT_EQ(listening({{"WEIR_LISTEN_HTTP", "127.0.0.1:2"}}, yaml), "http=127.0.0.1:2");
  EXPECT_EQ(listening({{"WEIR_LISTEN_RESP", "unix:/run/w"}}, yaml), "http=127.0.0.1:1 resp=unix:/run/w");
  EXPECT_EQ(listening({{"WEIR_LISTEN_PROXY", ":80"}}, yaml + "\nbackend: http://127.0.0.1:3000"),
            "http=127.0.0.1:1 proxy=0.0.0.0:80");
}

TEST(ListenVariables, AnEmptyOneRemovesADefaultListener) {
  EXPECT_EQ(listening({{"WEIR_LISTEN_RESP", ""}, {"WEIR_LISTEN_ADMIN", ""}}), "http=127.0.0.1:8080");
  EXPECT_EQ(listening({{"WEIR_LISTEN_PROXY", ""}}), "http=127.0.0.1:8080 resp=127.0.0.1:6380 admin=127.0.0.1:9090");
  EXPECT_EQ(listening({{"WEIR_LISTEN_HTTP", ""}}, "listen: [{address: '127.0.0.1:1', speak: http}]"),
            "WEIR_LISTEN_HTTP: is empty, which removes a default listener; the one at t.yaml:1:10 is the file's own\n");
}

TEST(ListenVariables, AreRefusedWhereTheyWouldBeGuesses) {
  EXPECT_EQ(listening({{"WEIR_LISTEN_HTTP", ":1"}},
                      "listen:\n- {address: '127.0.0.1:1', speak: http}\n- {address: '127.0.0.1:2', speak: http}\n"),
            "WEIR_LISTEN_HTTP: two listeners speak http, at t.yaml:2:3 and t.yaml:3:3: set the address of one with "
            "--set listen[N].address=ADDRESS\n");
  EXPECT_EQ(listening({{"WEIR_LISTEN_PROXY", ":80"}}),
            "WEIR_LISTEN_PROXY: speak proxy needs a backend: of a route, or at the top level\n");
  EXPECT_EQ(listening({{"WEIR_LISTEN_ADMIN", ":9090"}}),
            "WEIR_LISTEN_ADMIN: address \"0.0.0.0:9090\" is not loopback: an admin listener there needs "
            "admin.read_token or admin.write_token\n");
  EXPECT_EQ(listening({{"WEIR_LISTEN_HTPP", ":1"}}),
            "WEIR_LISTEN_HTPP: unknown setting; did you mean WEIR_LISTEN_HTTP?\n");
  EXPECT_EQ(listening({{"WEIR_LISTEN_0_ADDRESS", ":1"}}),
            "WEIR_LISTEN_0_ADDRESS: unknown setting; settings without a variable are set with --set PATH=VALUE\n");
}

TEST(Listen, TokensAreNeverShownAndChangeLiveAsTimeoutsDo) {
  const auto load = [](const std::string& secrets) {
    return std::get<Loaded>(parse("listen: [{address: '127.0.0.1:1', speak: http, " + secrets + "}]", "t.yaml", {}));
  };
  const Loaded before = load("token: hidden1");
  Loaded after = load("token: [hidden1, hidden2], write_token: hidden3, idle_timeout: 7s");
  for (const Loaded* loaded : {&before, &std::as_const(after)})
    EXPECT_EQ(show(*loaded).find("hidden1"), std::string::npos);
  std::string live;
  for (const Change& change : diff_settings(before, after))
    live += change.path + (change.live ? " live\n" : " later\n");
  EXPECT_EQ(live, "listen[0].token live\nlisten[0].idle_timeout live\nlisten[0].write_token live\n");
  keep_fixed(before.settings, after.settings);
  const Listener& listener = after.settings.listen[0];
  EXPECT_EQ(listener.tokens, (std::vector<std::string>{"hidden1", "hidden2"}));
  EXPECT_EQ(listener.write_token, "hidden3");
  EXPECT_EQ(listener.idle_timeout, std::chrono::seconds{7});
}

TEST(Redis, IsAskedAtAsManyPlacesAsTheStoreTakes) {
  std::string endpoints = "a:1";
  for (std::size_t i = 1; i < bounds::redis_probes_max; ++i) endpoints += ", a:1";
  EXPECT_EQ(problems("redis: {endpoints: [" + endpoints + "]}"), "");
  EXPECT_EQ(problems("redis: {endpoints: [" + endpoints + ", a:1]}"),
            "t.yaml:1:20: endpoints: at most 16 are allowed; other nodes of a cluster are discovered\n");
}

TEST(Redis, IsNotAtPortZero) {
  EXPECT_EQ(problems("redis: {endpoints: ['a:0']}"),
            "t.yaml:1:21: endpoints: address \"a:0\" needs a port from 1 to 65535\n");
  EXPECT_EQ(problems("redis: {endpoints: ['a:1', 'unix:/run/redis.sock']}"), "");
}

TEST(Redis, HasAHashTagThatRedisReadsAsOne) {
  EXPECT_EQ(problems("store: redis\nredis: {hash_tag: weir-1}"), "");
  EXPECT_EQ(problems("store: redis\nredis: {hash_tag: '}x'}"),
            "t.yaml:2:19: hash_tag \"}x\" must be written without braces\n");
}

}  // namespace
}  // namespace weir::config::listen_test
