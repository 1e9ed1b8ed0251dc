#include "weir/proxy/named_backend.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::proxy::named_backend_test {
namespace {

std::string reason_of(const std::string& url, const std::vector<std::string>& allowed = {}) {
  TlsClients clients("");
  const Result<Backend> backend = make_named_backend(url, allowed, clients);
  if (!backend) return std::string(backend.error().word);
  return backend->origin.public_only ? "public only" : "any";
}

TEST(NamedBackend, AcceptsPublicHostsAndChecksTheirAddressesLater) {
  EXPECT_EQ(reason_of("http://api.example.com"), "public only");
  EXPECT_EQ(reason_of("https://api.example.com:8443/v2"), "public only");
  EXPECT_EQ(reason_of("HTTP://8.8.8.8:80"), "public only");
  EXPECT_TRUE(may_dial({"8.8.8.8", 80, {}}));
  EXPECT_FALSE(may_dial({"10.0.0.1", 80, {}}));
  EXPECT_FALSE(may_dial({"::ffff:127.0.0.1", 80, {}}));
  EXPECT_FALSE(may_dial({"", 0, "/run/backend.sock"}));
}

TEST(NamedBackend, RefusesPrivateAddresses) {
  for (const char* const url : {"http://127.0.0.1", "http://10.1.2.3:80", "http://169.254.169.254/latest",
                                "http://[::1]:80", "http://[::ffff:10.0.0.1]", "http://[64:ff9b::a00:1]"}) {
    EXPECT_EQ(reason_of(url), "private_address") << url;
  }
}

TEST(NamedBackend, AnAllowedHostMayBePrivate) {
  EXPECT_EQ(reason_of("http://127.0.0.1:3000", {"127.0.0.1"}), "any");
  EXPECT_EQ(reason_of("http://Tenants.Internal:3000/a", {"tenants.internal"}), "any");
  EXPECT_EQ(reason_of("http://other.internal", {"tenants.internal"}), "public only");
  EXPECT_EQ(reason_of("http://LocalHost:3000", {"localhost"}), "any");
  EXPECT_EQ(reason_of("http://localhost", {"127.0.0.1"}), "any");
  EXPECT_EQ(reason_of("http://127.0.0.1", {"localhost"}), "private_address");
  EXPECT_EQ(reason_of("http://[::1]:80", {"0:0:0:0:0:0:0:1"}), "any");
  EXPECT_EQ(reason_of("http://[FD00:0::7]", {"fd00::7"}), "any");
  EXPECT_EQ(reason_of("http://[::ffff:10.0.0.1]", {"10.0.0.1"}), "any");
}

TEST(NamedBackend, RefusesWhatIsNoUrlOfAWebServer) {
  EXPECT_EQ(reason_of("h2://8.8.8.8"), "bad_scheme");
  EXPECT_EQ(reason_of("ftp://8.8.8.8"), "bad_scheme");
  EXPECT_EQ(reason_of("unix:/run/x.sock"), "bad_scheme");
  EXPECT_EQ(reason_of("(too long)"), "bad_scheme");
  EXPECT_EQ(reason_of("http://user@8.8.8.8"), "bad_url");
  EXPECT_EQ(reason_of("http://"), "bad_url");
  EXPECT_EQ(reason_of("http://8.8.8.8/?a=b"), "bad_url");
  EXPECT_EQ(reason_of("http://8.8.8.8/" + std::string(2048, 'a')), "bad_url");
}

}  // namespace
}  // namespace weir::proxy::named_backend_test
