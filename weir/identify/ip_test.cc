#include "weir/identify/ip.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace weir::ip_test {
namespace {

std::string printed(std::string_view text) {
  const auto address = IpAddress::parse(text);
  return address ? address->print() : address.error().detail;
}

std::string printed_prefix(std::string_view text) {
  const auto prefix = IpPrefix::parse(text);
  return prefix ? prefix->print() : prefix.error().detail;
}

IpAddress address(std::string_view text) {
  return IpAddress::parse(text).value();
}

IpPrefix prefix(std::string_view text) {
  return IpPrefix::parse(text).value();
}

TEST(IpAddress, PrintsEveryValidSpellingInCanonicalForm) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"0.0.0.0", "0.0.0.0"},
      {"255.255.255.255", "255.255.255.255"},
      {"10.0.0.2", "10.0.0.2"},
      {"::", "::"},
      {"0:0:0:0:0:0:0:0", "::"},
      {"::1", "::1"},
      {"1::", "1::"},
      {"2001:0db8:0000:0000:0000:ff00:0042:8329", "2001:db8::ff00:42:8329"},
      {"2001:DB8::A", "2001:db8::a"},
      {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},    // the first of two equal runs
      {"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},          // the longer run
      {"2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},  // one group is not shortened
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},           // nor when "::" was written for it
      {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
      {"1:2:3:4:5:6::", "1:2:3:4:5:6::"},
      {"0:0:1::", "0:0:1::"},
      {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
      {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
      {"::1.2.3.4", "::102:304"},
      {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
  };
  for (const auto& [text, canonical] : cases) EXPECT_EQ(printed(text), canonical) << text;
}

TEST(IpAddress, IsTheIpv4AddressWhenWrittenAsMappedIpv6) {
  for (const std::string_view text : {"::ffff:10.0.0.1", "::FFFF:a00:1", "0:0:0:0:0:ffff:10.0.0.1"}) {
    EXPECT_EQ(address(text), IpAddress::v4({10, 0, 0, 1})) << text;
    EXPECT_EQ(printed(text), "10.0.0.1");
  }
  EXPECT_EQ(IpAddress::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}), IpAddress::v4({10, 0, 0, 1}));
  EXPECT_FALSE(address("::fffe:10.0.0.1").is_v4());
  EXPECT_FALSE(address("1::ffff:10.0.0.1").is_v4());
}

TEST(IpAddress, RefusesInvalidAddresses) {
  for (const std::string_view text : {"",
                                      " ",
                                      "1",
                                      "1.2.3",
                                      "1.2.3.",
                                      "1.2.3.4.5",
                                      "1.2.3.256",
                                      "1.2.3.-4",
                                      "+1.2.3.4",
                                      "1.2.3.4 ",
                                      " 1.2.3.4",
                                      "01.2.3.4",
                                      "1.2.3.04",
                                      "1.2.3.00",
                                      "0x1.2.3.4",
                                      "1..2.3",
                                      "1.2.3.4:80",
                                      "[::1]",
                                      "[::1]:80",
                                      ":",
                                      ":::",
                                      "1:2:3:4:5:6:7",
                                      "1:2:3:4:5:6:7:8:9",
                                      "1::2::3",
                                      "::12345",
                                      "::g",
                                      ":1::2",
                                      "1::2:",
                                      "1:2:3:4:5:6:7:1.2.3.4",
                                      "::1.2.3",
                                      "::1.2.3.256",
                                      "::01.2.3.4",
                                      "::1/128",
                                      "fe80::1%eth0",
                                      "fe80::1%",
                                      "1.2.3.4%1",
                                      "::1:2:3:4:5:6:7:8",
                                      "example.com",
                                      "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555"}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
  EXPECT_FALSE(IpAddress::parse(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(IpAddress::parse(std::string(10'000, '1')));
}

TEST(IpAddress, SuggestsTheLikelyMistake) {
  EXPECT_EQ(printed(""), "\"\" is not an IP address: it is empty");
  EXPECT_EQ(
      printed("fe80::1%eth0"),
      "\"fe80::1%eth0\" is not an IP address: a zone (\"%...\") names an interface of one machine and must be left "
      "out");
  EXPECT_EQ(printed("10.0.0.0/8"), "\"10.0.0.0/8\" is not an IP address: one address is meant here, not a prefix");
  EXPECT_EQ(printed("[::1]:80"), "\"[::1]:80\" is not an IP address: it must be written without brackets and port");
  EXPECT_EQ(printed("10.0.0.1:80"), "\"10.0.0.1:80\" is not an IP address: it must be written without a port");
  EXPECT_EQ(
      printed("010.0.0.1"),
      "\"010.0.0.1\" is not an IP address: IPv4 is four numbers of 0 to 255 without leading zeros, joined by '.'");
}

TEST(IpAddress, SortsAllIpv4BeforeAllIpv6) {
  EXPECT_LT(address("255.255.255.255"), address("::"));
  EXPECT_LT(address("9.255.255.255"), address("10.0.0.0"));
  EXPECT_LT(address("2001:db8::"), address("2001:db8::1"));
  EXPECT_EQ(address("1.2.3.4").bytes()[3], 4);
  EXPECT_EQ(address("1.2.3.4").width(), 32);
  EXPECT_EQ(address("::").width(), 128);
}

rc::Gen<IpAddress> any_address() {
  // Zero bytes often, so that runs of every length come up.
  const auto byte = rc::gen::oneOf(rc::gen::just<std::uint8_t>(0), rc::gen::arbitrary<std::uint8_t>());
  return rc::gen::map(rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::container<IpAddress::Bytes>(byte)),
                      [](const std::pair<bool, IpAddress::Bytes>& made) {
                        const auto& b = made.second;
                        return made.first ? IpAddress::v4({b[0], b[1], b[2], b[3]}) : IpAddress::v6(b);
                      });
}

TEST(IpAddress, ReadsBackWhatItPrints) {
  EXPECT_TRUE(rc::check([] {
    const IpAddress made = *any_address();
    RC_ASSERT(IpAddress::parse(made.print()).value() == made);
  }));
}

TEST(IpAddress, PrintsAsTheSystemDoes) {
  EXPECT_TRUE(rc::check([] {
    const IpAddress made = *any_address();
    char text[INET6_ADDRSTRLEN];
    inet_ntop(made.is_v4() ? AF_INET : AF_INET6, made.bytes().data(), text, sizeof text);
    // The system writes ::a.b.c.d with dots, a form RFC 4291 deprecates.
    RC_PRE(made.is_v4() || std::string_view(text).find('.') == std::string_view::npos);
    RC_ASSERT(made.print() == text);
  }));
}

TEST(IpPrefix, PrintsEveryValidSpellingInCanonicalForm) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"10.20.0.0/16", "10.20.0.0/16"},         {"0.0.0.0/0", "0.0.0.0/0"},
      {"192.0.2.1/32", "192.0.2.1/32"},         {"192.0.2.1", "192.0.2.1/32"},
      {"2001:0db8:0000::/48", "2001:db8::/48"}, {"::/0", "::/0"},
      {"2001:DB8::1/128", "2001:db8::1/128"},   {"2001:db8::1", "2001:db8::1/128"},
      {"10.128.0.0/9", "10.128.0.0/9"},         {"::ffff:10.0.0.0/104", "10.0.0.0/8"},
      {"::ffff:0:0/96", "0.0.0.0/0"},           {"::ffff:10.0.0.1/128", "10.0.0.1/32"},
      {"::ffff:10.0.0.1", "10.0.0.1/32"},
  };
  for (const auto& [text, canonical] : cases) EXPECT_EQ(printed_prefix(text), canonical) << text;
}

TEST(IpPrefix, RefusesInvalidPrefixes) {
  for (const std::string_view text : {"",
                                      "/",
                                      "/8",
                                      "10.0.0.0/",
                                      "10.0.0.0/33",
                                      "10.0.0.0/08",
                                      "10.0.0.0/00",
                                      "10.0.0.0/+8",
                                      "10.0.0.0/-1",
                                      "10.0.0.0/ 8",
                                      "10.0.0.0/8 ",
                                      "10.0.0.0/8/8",
                                      "10.0.0.0/255.0.0.0",
                                      "10/8",
                                      "::/129",
                                      "::/1000",
                                      "::%eth0/64",
                                      "::/64%eth0",
                                      "::ffff:10.0.0.0/129",
                                      "::/4294967296"}) {
    EXPECT_FALSE(IpPrefix::parse(text)) << text;
  }
  EXPECT_EQ(printed_prefix("10.0.0.0/33"),
            "\"10.0.0.0/33\" is not a prefix: after the '/' comes a number of 0 to 32 without leading zeros");
}

TEST(IpPrefix, SuggestsAPrefixWhenBitsAreSetAfterIt) {
  EXPECT_EQ(
      printed_prefix("10.20.1.5/16"),
      "\"10.20.1.5/16\" has bits set after its first 16: write 10.20.0.0/16 for the whole range or 10.20.1.5 for this "
      "one address");
  EXPECT_EQ(
      printed_prefix("2001:db8::1/64"),
      "\"2001:db8::1/64\" has bits set after its first 64: write 2001:db8::/64 for the whole range or 2001:db8::1 for "
      "this one address");
  EXPECT_FALSE(IpPrefix::parse("0.0.0.1/31"));
  EXPECT_TRUE(IpPrefix::parse("0.0.0.2/31"));
  EXPECT_FALSE(IpPrefix::parse("128.0.0.0/0"));
  EXPECT_EQ(printed_prefix("::ffff:10.0.0.0/95"),
            "\"::ffff:10.0.0.0/95\" has bits set after its first 95: a prefix of IPv4 addresses is written like "
            "10.0.0.0/24");
}

TEST(IpPrefix, ContainsItsFirstAndLastAddressAndNoNeighbor) {
  const IpPrefix sixteen = prefix("10.20.0.0/16");
  EXPECT_TRUE(sixteen.contains(address("10.20.0.0")));
  EXPECT_TRUE(sixteen.contains(address("10.20.255.255")));
  EXPECT_FALSE(sixteen.contains(address("10.19.255.255")));
  EXPECT_FALSE(sixteen.contains(address("10.21.0.0")));
  const IpPrefix odd = prefix("2001:db8:8000::/33");
  EXPECT_TRUE(odd.contains(address("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")));
  EXPECT_FALSE(odd.contains(address("2001:db8:7fff:ffff:ffff:ffff:ffff:ffff")));
  EXPECT_FALSE(odd.contains(address("2001:db9::")));
}

TEST(IpPrefix, NeverContainsAddressesOfTheOtherFamily) {
  EXPECT_FALSE(prefix("0.0.0.0/0").contains(address("::")));
  EXPECT_FALSE(prefix("::/0").contains(address("0.0.0.0")));
  EXPECT_TRUE(prefix("::/0").contains(address("ffff::")));
  EXPECT_TRUE(prefix("10.0.0.0/8").contains(address("::ffff:10.1.2.3"))) << "a mapped address is the IPv4 address";
}

TEST(IpPrefix, ContainsPrefixesAsNarrowAsItselfOrNarrower) {
  EXPECT_TRUE(prefix("10.0.0.0/8").contains(prefix("10.0.0.0/8")));
  EXPECT_TRUE(prefix("10.0.0.0/8").contains(prefix("10.0.0.0/9")));
  EXPECT_FALSE(prefix("10.0.0.0/9").contains(prefix("10.0.0.0/8")));
  EXPECT_FALSE(prefix("10.0.0.0/8").contains(prefix("11.0.0.0/9")));
}

TEST(IpPrefix, OfAnAddressClearsTheRestAndFitsItsWidth) {
  static_assert(IpPrefix::of(IpAddress::v4({10, 20, 30, 40}), 12).address() == IpAddress::v4({10, 16, 0, 0}));
  EXPECT_EQ(IpPrefix::of(address("2001:db8:1:2:3:4:5:6"), 64), prefix("2001:db8:1:2::/64"));
  EXPECT_EQ(IpPrefix::of(address("2001:db8:1:2:3:4:5:6"), 128).address(), address("2001:db8:1:2:3:4:5:6"));
  EXPECT_EQ(IpPrefix::of(address("2001:db8:1:2:3:4:5:6"), 0), prefix("::/0"));
  EXPECT_EQ(IpPrefix::of(address("10.0.0.1"), 64), prefix("10.0.0.1/32"));
  EXPECT_EQ(IpPrefix::of(address("10.0.0.1"), -1), prefix("0.0.0.0/0"));
}

TEST(IpPrefix, ReadsBackWhatItPrintsAndContainsItsAddress) {
  EXPECT_TRUE(rc::check([] {
    const IpAddress made = *any_address();
    const IpPrefix around = IpPrefix::of(made, *rc::gen::inRange(0, made.width() + 1));
    RC_ASSERT(IpPrefix::parse(around.print()).value() == around);
    RC_ASSERT(around.contains(made));
  }));
}

}  // namespace
}  // namespace weir::ip_test
