// The policy checks addresses without the network's code, so that whoever only reads configurations does not need it.
// Here both are at hand, and must agree: what is checked as valid must not be refused at the start.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "weir/config/listen.h"
#include "weir/config/parse.h"
#include "weir/net/resolve.h"
#include "weir/net/socket.h"

namespace weir::addresses_test {
namespace {

std::vector<std::string> addresses() {
  std::vector<std::string> all = {"", ":", "unix:", "unix:/a", "unix:" + std::string(107, 'x'), "nohost", "a:b:c"};
  for (const std::string host :
       {"",      "127.0.0.1", "127.1", "0177.0.0.1", "1.2.3.4.5", "256.1.1.1", "localhost",        "LOCALHOST",
        "redis", "a_b-c.d",   "a b",   "é",          "::1",       "[::1]",     "[::ffff:1.2.3.4]", "[fe80::1%eth0]",
        "[",     "[]",        "[::1",  "::1]",       "[1.2.3.4]", "*"}) {
    for (const std::string port :
         {"", "0", "80", "080", "65535", "65536", "-0", "-1", "+1", " 1", "1 ", "0x1", "1e1"}) {
      all.push_back(host + ":" + port);
    }
  }
  return all;
}

TEST(Addresses, ToListenOnAreTheSameToThePolicyAndToTheNetwork) {
  for (const std::string& text : addresses()) {
    const auto checked = config::canonical_address(text);
    const auto parsed = Address::parse(text);
    EXPECT_EQ(static_cast<bool>(checked), static_cast<bool>(parsed)) << text;
    if (!checked && !parsed) {
      EXPECT_EQ(checked.error().detail, parsed.error().detail);
    }
  }
}

TEST(Addresses, AreLoopbackToThePolicyAndToTheNetworkAlike) {
  for (const std::string host : {"127.0.0.1", "127.9.8.7", "localhost", "[::1]", "[0::1]", "[0:0:0:0:0:0:0:1]",
                                 "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1", "[::]", "[::2]", "[::ffff:10.0.0.1]"}) {
    // Without tokens the admin API is for this machine only.
    const auto checked = config::parse("listen: [{address: \"" + host + ":9090\", speak: admin}]", "weir.yaml", {});
    EXPECT_EQ(std::holds_alternative<config::Loaded>(checked), Address::parse(host + ":9090")->is_loopback()) << host;
  }
}

TEST(Addresses, ToDialAreTheSameToThePolicyAndToTheNetwork) {
  for (const std::string& text : addresses()) {
    const auto checked = config::check_target(text);
    const auto parsed = Target::parse(text);
    EXPECT_EQ(static_cast<bool>(checked), static_cast<bool>(parsed)) << text;
  }
}

}  // namespace
}  // namespace weir::addresses_test
