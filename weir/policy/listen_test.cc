#include "weir/policy/listen.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/base/bounds.h"
#include "weir/policy/parse.h"

namespace weir::policy {
namespace {

std::string told(std::string_view text) {
  const Result<std::string> place = canonical_address(text);
  return place ? *place : place.error().detail;
}

TEST(Listen, OnePlaceHasOneSpelling) {
  EXPECT_EQ(told("127.0.0.1:8080"), "127.0.0.1:8080");
  EXPECT_EQ(told("localhost:8080"), "127.0.0.1:8080");
  EXPECT_EQ(told("0.0.0.0:0"), "0.0.0.0:0");
  EXPECT_EQ(told("[0:0::1]:080"), "[::1]:80");
  EXPECT_EQ(told("unix:/run/weir.sock"), "unix:/run/weir.sock");
}

TEST(Listen, WhatIsNoAddressIsToldWhy) {
  EXPECT_EQ(told("8080"), "address \"8080\" has no port: write host:port or unix:/path");
  EXPECT_EQ(told("127.0.0.1:"), "address \"127.0.0.1:\" needs a port from 0 to 65535");
  EXPECT_EQ(told("127.0.0.1:65536"), "address \"127.0.0.1:65536\" needs a port from 0 to 65535");
  EXPECT_EQ(told("127.0.0.1:-1"), "address \"127.0.0.1:-1\" needs a port from 0 to 65535");
  EXPECT_EQ(told("::1:80"), "address \"::1:80\" is ambiguous: write an IPv6 address in brackets, [::1]:8080");
  EXPECT_EQ(told("example.com:80"), "address \"example.com:80\" needs an IP address before the port");
  EXPECT_EQ(told("unix:"), "address \"unix:\" has no path after unix:");
}

TEST(Listen, APathIsAsLongAsTheKernelAllows) {
  EXPECT_TRUE(canonical_address("unix:/" + std::string(106, 'x')));
  EXPECT_FALSE(canonical_address("unix:/" + std::string(107, 'x')));
}

TEST(Target, IsAnAddressWhoseHostMayHaveAName) {
  for (const char* good : {"redis:6379", "redis.example.com:0", "10.0.0.1:1", "[::1]:65535", "unix:/run/redis.sock"}) {
    EXPECT_TRUE(check_target(good)) << good;
  }
  const auto refusal = [](std::string_view text) { return check_target(text).error().detail; };
  EXPECT_EQ(refusal("redis"), "address \"redis\" has no port: write host:port or unix:/path");
  EXPECT_EQ(refusal("redis:65536"), "address \"redis:65536\" needs a port from 0 to 65535");
  EXPECT_EQ(refusal(":80"), "address \":80\" needs a host name or an IP address before the port");
  EXPECT_EQ(refusal("::1:80"), "address \"::1:80\" is ambiguous: write an IPv6 address in brackets, [::1]:8080");
  EXPECT_TRUE(check_target(std::string(bounds::domain_bytes_max, 'a') + ":80"));
  EXPECT_FALSE(check_target(std::string(bounds::domain_bytes_max + 1, 'a') + ":80"));
}

std::string problems(const std::string& yaml) {
  const Outcome outcome = parse(yaml, "t.yaml", {});
  const Problems* const told = std::get_if<Problems>(&outcome);
  return told == nullptr ? "" : text(*told);
}

TEST(Listen, TakesAsManyCertificatesAsTheServerDoes) {
  std::string tls = "{cert: c, key: k}";
  for (std::size_t i = 1; i < bounds::listener_certificates_max; ++i) tls += ", {cert: c, key: k}";
  const std::string start = "listen: [{address: '127.0.0.1:1', speak: http, tls: [";
  EXPECT_EQ(problems(start + tls + "]}]"), "");
  EXPECT_EQ(problems(start + tls + ", {cert: c, key: k}]}]"),
            "t.yaml:1:53: tls has 257 certificates, at most 256 are possible\n");
}

TEST(Redis, IsAskedAtAsManyPlacesAsTheStoreTakes) {
  std::string endpoints = "a:1";
  for (std::size_t i = 1; i < bounds::redis_scouts_max; ++i) endpoints += ", a:1";
  EXPECT_EQ(problems("redis: {endpoints: [" + endpoints + "]}"), "");
  EXPECT_EQ(problems("redis: {endpoints: [" + endpoints + ", a:1]}"),
            "t.yaml:1:20: endpoints: at most 16 are asked; the others of a cluster are found by themselves\n");
}

}  // namespace
}  // namespace weir::policy
