#include "weir/policy/listen.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace weir::policy
