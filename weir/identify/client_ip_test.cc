#include "weir/identify/client_ip.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::client_ip_test {
namespace {

TrustedProxies trusting(std::initializer_list<std::string_view> prefixes) {
  std::vector<IpPrefix> list;
  for (const std::string_view text : prefixes) list.push_back(*IpPrefix::parse(text));
  return *TrustedProxies::make(std::move(list));
}

std::string client(std::string_view peer, std::vector<std::string_view> lines, std::string_view real_ip = {}) {
  static const TrustedProxies trusted = trusting({"10.0.0.0/8", "2001:db8:ffff::/48", "127.0.0.1", "127.0.0.1/32"});
  return client_ip(*IpAddress::parse(peer), lines, real_ip, trusted).print();
}

std::string hop(std::string_view text) {
  const auto address = parse_hop(text);
  return address ? address->print() : "none";
}

TEST(ClientIp, IgnoresForwardedForFromUntrustedPeers) {
  EXPECT_EQ(client("203.0.113.9", {"1.2.3.4"}, "5.6.7.8"), "203.0.113.9");
  EXPECT_EQ(client("203.0.113.9", {"10.0.0.1, 1.2.3.4"}), "203.0.113.9");
}

TEST(ClientIp, IsTheRightmostAddressThatIsNotATrustedProxy) {
  EXPECT_EQ(client("10.0.0.1", {"203.0.113.9"}), "203.0.113.9");
  EXPECT_EQ(client("10.0.0.1", {"6.6.6.6, 203.0.113.9, 10.0.0.7,10.0.0.8"}), "203.0.113.9") << "6.6.6.6 is forged";
  EXPECT_EQ(client("2001:db8:ffff::1", {"6.6.6.6, 2001:db8::9, 10.0.0.7"}), "2001:db8::9");
}

TEST(ClientIp, ReadsAllLinesInTheirOrder) {
  EXPECT_EQ(client("10.0.0.1", {"6.6.6.6", "203.0.113.9, 10.0.0.7", "10.0.0.8"}), "203.0.113.9");
  EXPECT_EQ(client("10.0.0.1", {"203.0.113.9", "", " , ,"}), "203.0.113.9") << "empty elements are ignored";
}

TEST(ClientIp, StopsAtAHopItCannotRead) {
  EXPECT_EQ(client("10.0.0.1", {"1.2.3.4, unknown"}), "10.0.0.1");
  EXPECT_EQ(client("10.0.0.1", {"1.2.3.4, 1.2.3, 10.0.0.7"}), "10.0.0.7");
  EXPECT_EQ(client("10.0.0.1", {"1.2.3.4, fe80::1%eth0, 10.0.0.7"}), "10.0.0.7");
}

TEST(ClientIp, IsTheLeftmostHopWhenAllAreTrusted) {
  EXPECT_EQ(client("10.0.0.1", {"10.0.0.9, 10.0.0.8"}), "10.0.0.9");
}

TEST(ClientIp, UsesXRealIpOnlyWithoutForwardedFor) {
  EXPECT_EQ(client("127.0.0.1", {}, "203.0.113.9"), "203.0.113.9");
  EXPECT_EQ(client("127.0.0.1", {""}, "203.0.113.9"), "203.0.113.9");
  EXPECT_EQ(client("127.0.0.1", {"198.51.100.1"}, "203.0.113.9"), "198.51.100.1");
  EXPECT_EQ(client("127.0.0.1", {"nonsense"}, "203.0.113.9"), "127.0.0.1");
  EXPECT_EQ(client("127.0.0.1", {}, "nonsense"), "127.0.0.1");
  EXPECT_EQ(client("127.0.0.1", {}), "127.0.0.1");
}

TEST(ClientIp, RecognizesAnIpv4PeerOnADualStackSocket) {
  EXPECT_EQ(client("::ffff:10.0.0.1", {"203.0.113.9"}), "203.0.113.9");
}

TEST(ClientIp, ReadsPortsAndBrackets) {
  EXPECT_EQ(hop("203.0.113.9:4711"), "203.0.113.9");
  EXPECT_EQ(hop(" [2001:DB8::1]:443\t"), "2001:db8::1");
  EXPECT_EQ(hop("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(hop("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(hop("::ffff:1.2.3.4"), "1.2.3.4");
  for (const std::string_view bad : {"", "203.0.113.9:", "203.0.113.9:123456", "203.0.113.9:x", "[203.0.113.9]", "[",
                                     "[::1", "[::1]x", "[::1]:", "::1]", "1.2.3.4 5.6.7.8", "\"1.2.3.4\"", "_hidden"}) {
    EXPECT_EQ(hop(bad), "none") << bad;
  }
  EXPECT_EQ(hop(std::string(100'000, ':')), "none");
}

TEST(ClientIp, HandlesALongChain) {
  std::string line = "203.0.113.9";
  for (int i = 0; i < 4000; ++i) line += ", 10.0.0.1";
  EXPECT_EQ(client("10.0.0.1", {line}), "203.0.113.9");
}

}  // namespace
}  // namespace weir::client_ip_test
