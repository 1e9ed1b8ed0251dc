#include "weir/net/proxy_header.h"

#include <gtest/gtest.h>

#include "weir/base/bounds.h"

namespace weir::proxy_header_test {
namespace {

using namespace std::string_literals;

const std::string kV2 = "\r\n\r\n\0\r\nQUIT\n"s;

std::string v2(char command, char family, const std::string& rest) {
  return kV2 + command + family + static_cast<char>(rest.size() >> 8) + static_cast<char>(rest.size() & 255) + rest;
}

// "15 203.0.113.9", "incomplete", or the error.
std::string described(const std::string& bytes) {
  const auto parsed = ProxyHeader::parse(bytes);
  if (!parsed) return parsed.error().detail;
  if (!*parsed) return "incomplete";
  return std::to_string((*parsed)->bytes) + " " + (*parsed)->client;
}

TEST(ProxyHeader, Version1NamesTheClient) {
  EXPECT_EQ(described("PROXY TCP4 203.0.113.9 10.0.0.1 56324 443\r\nGET /"), "43 203.0.113.9");
  EXPECT_EQ(described("PROXY TCP6 2001:DB8::9 2001:db8::1 0 65535\r\n"), "44 2001:db8::9");
  EXPECT_EQ(described("PROXY UNKNOWN\r\n"), "15 ");
  EXPECT_EQ(described("PROXY UNKNOWN ff:: ff:: 1 2 anything\r\n"), "38 ");
}

TEST(ProxyHeader, Version2NamesTheClient) {
  EXPECT_EQ(described(v2(0x21, 0x11, "\xCB\x00\x71\x09\x0A\x00\x00\x01\x12\x34\x01\xBB"s) + "GET"), "28 203.0.113.9");
  EXPECT_EQ(described(v2(0x21, 0x21, std::string(15, '\0') + '\1' + std::string(20, 'x'))), "52 ::1");
  EXPECT_EQ(described(v2(0x21, 0x11, std::string(12, '\1') + "\x04\x00\x02zz"s)), "33 1.1.1.1");  // with a TLV
}

TEST(ProxyHeader, LocalUnspecifiedAndUnixLeaveTheSocketsAddress) {
  EXPECT_EQ(described(v2(0x20, 0x00, "")), "16 ");
  EXPECT_EQ(described(v2(0x20, 0x11, std::string(12, '\1'))), "28 ");
  EXPECT_EQ(described(v2(0x21, 0x00, "abc")), "19 ");
  EXPECT_EQ(described(v2(0x21, 0x31, std::string(216, 'a'))), "232 ");
}

TEST(ProxyHeader, EveryPrefixIsIncompleteAndWantedNeverReadsPastTheEnd) {
  for (const std::string& whole : {"PROXY TCP4 203.0.113.9 10.0.0.1 56324 443\r\n"s, "PROXY UNKNOWN\r\n"s,
                                   v2(0x21, 0x11, std::string(12, '\1') + "\x04\x00\x02zz"s), v2(0x20, 0, "")}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_EQ(described(whole.substr(0, size)), "incomplete") << size;
      const std::size_t wanted = ProxyHeader::wanted(whole.substr(0, size));
      EXPECT_GE(wanted, 1u);
      EXPECT_LE(size + wanted, whole.size()) << whole;
    }
  }
}

TEST(ProxyHeader, RefusesWhatIsNone) {
  EXPECT_EQ(described("GET / HTTP/1.1\r\n"), "PROXY header: the connection begins with other bytes");
  EXPECT_EQ(described("PROXY"), "incomplete");
  EXPECT_EQ(described("PROXX"), "PROXY header: the connection begins with other bytes");
  EXPECT_EQ(described("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n"),
            "PROXY header: version 1 names another protocol than TCP4, TCP6 or UNKNOWN");
  for (const char* const bad :
       {"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n"}) {
    EXPECT_EQ(described(bad), "PROXY header: version 1 needs two addresses and two ports") << bad;
  }
  EXPECT_EQ(described(v2(0x11, 0x11, std::string(12, '\1'))),
            "PROXY header: version 2 has an unknown version or command");
  EXPECT_EQ(described(v2(0x22, 0x11, std::string(12, '\1'))),
            "PROXY header: version 2 has an unknown version or command");
  EXPECT_EQ(described(v2(0x21, 0x12, std::string(12, '\1'))),
            "PROXY header: version 2 names another transport than TCP over IPv4, IPv6 or UNIX");
  EXPECT_EQ(described(v2(0x21, 0x11, std::string(11, '\1'))), "PROXY header: version 2 is too short for its addresses");
  EXPECT_EQ(described(v2(0x21, 0x21, std::string(35, '\1'))), "PROXY header: version 2 is too short for its addresses");
}

TEST(ProxyHeader, IsBounded) {
  const std::string longest = "PROXY UNKNOWN " + std::string(107 - 16, 'x') + "\r\n";
  EXPECT_EQ(described(longest), "107 ");
  EXPECT_EQ(described("PROXY UNKNOWN " + std::string(107 - 15, 'x') + "\r\n"),
            "PROXY header: the line of version 1 is longer than 107 bytes");
  EXPECT_EQ(described(v2(0x20, 0, std::string(bounds::proxy_header_bytes_max - 16, 'x'))),
            std::to_string(bounds::proxy_header_bytes_max) + " ");
  EXPECT_EQ(described(v2(0x20, 0, std::string(bounds::proxy_header_bytes_max - 15, 'x'))),
            "PROXY header: version 2 is too long");
}

}  // namespace
}  // namespace weir::proxy_header_test
