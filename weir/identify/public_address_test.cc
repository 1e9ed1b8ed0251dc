#include "weir/identify/public_address.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::public_address_test {
namespace {

bool is_public_text(const std::string& text) {
  return is_public(*IpAddress::parse(text));
}

TEST(PublicAddress, GlobalUnicastIsPublic) {
  for (const char* const text :
       {"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255",
        "172.32.0.0", "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111",
        "2001:4860:4860::8888", "2a00::1", "64:ff9b::8.8.8.8", "2002:808:808::1", "::ffff:8.8.8.8"}) {
    EXPECT_TRUE(is_public_text(text)) << text;
  }
}

TEST(PublicAddress, SpecialPurposeAddressesAreNot) {
  for (const char* const text :
       {"0.0.0.0",     "0.1.2.3",     "10.0.0.1",        "10.255.255.255", "100.64.0.1",     "100.127.255.255",
        "127.0.0.1",   "127.255.0.1", "169.254.169.254", "172.16.0.1",     "172.31.255.255", "192.0.0.1",
        "192.0.2.9",   "192.88.99.1", "192.168.0.1",     "198.18.0.1",     "198.19.255.255", "198.51.100.1",
        "203.0.113.9", "224.0.0.1",   "239.1.2.3",       "240.0.0.1",      "255.255.255.255"}) {
    EXPECT_FALSE(is_public_text(text)) << text;
  }
  for (const char* const text : {"::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001:db8::1", "2001::1",
                                 "2001:2::1", "2001:10::1", "3fff::1", "100::1", "64:ff9b:1::1", "5f00::1"}) {
    EXPECT_FALSE(is_public_text(text)) << text;
  }
}

TEST(PublicAddress, LooksInsideAddressesThatCarryAnIpv4Address) {
  for (const char* const text : {"::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254",
                                 "2002:7f00:1::1", "2002:a00:1::1", "::127.0.0.1"}) {
    EXPECT_FALSE(is_public_text(text)) << text;
  }
}

}  // namespace
}  // namespace weir::public_address_test
