#include "weir/identify/request.h"

#include <gtest/gtest.h>

#include "weir/base/bounds.h"

namespace weir::request_test {
namespace {

using Attributes = std::vector<Attribute>;

const TrustedProxies& trusted() {
  static const TrustedProxies proxies = *TrustedProxies::make({*IpPrefix::parse("10.0.0.0/8")});
  return proxies;
}

// The parts of a key, joined by ':', or "missing".
std::string id(const Attributes& attributes, std::initializer_list<std::string_view> sources) {
  Request request;
  if (const auto read = request.read(attributes, trusted()); !read) return read.error().detail;
  std::string out;
  for (const std::string_view source : sources) {
    if (!out.empty()) out += ':';
    if (!request.append_part(KeySource::of(source), 64, out)) return "missing";
  }
  return out;
}

TEST(Request, FindsEveryKeySource) {
  const Attributes attributes = {{"ip", "203.0.113.9"},
                                 {"method", "post"},
                                 {"path", "/api//v1/%75sers?tenant=a%20b&x"},
                                 {"host", "WWW.Example.com:8443"},
                                 {"header:x-tenant-id", " acme "},
                                 {"header:cookie", "a=1; idx=s3cret"},
                                 {"header:cookie", "late=2"},
                                 {"header:authorization", "bearer tok"},
                                 {"form:email", "a@b.c"},
                                 {"descriptor:user", "u"}};
  EXPECT_EQ(id(attributes, {"ip"}), "203.0.113.9");
  EXPECT_EQ(id(attributes, {"apikey"}), "tok");
  EXPECT_EQ(id(attributes, {"header:X-Tenant-Id"}), "acme");
  EXPECT_EQ(id(attributes, {"cookie:idx"}), "s3cret");
  EXPECT_EQ(id(attributes, {"cookie:late"}), "2");
  EXPECT_EQ(id(attributes, {"query:tenant"}), "a b");
  EXPECT_EQ(id(attributes, {"form:email"}), "a@b.c");
  EXPECT_EQ(id(attributes, {"path"}), "/api/v1/users");
  EXPECT_EQ(id(attributes, {"path:1"}), "api");
  EXPECT_EQ(id(attributes, {"path:3"}), "users");
  EXPECT_EQ(id(attributes, {"method"}), "POST");
  EXPECT_EQ(id(attributes, {"host"}), "www.example.com");
  EXPECT_EQ(id(attributes, {"descriptor:user"}), "u");
  EXPECT_EQ(id(attributes, {"global"}), "global");
  EXPECT_EQ(id(attributes, {"header:x-tenant-id", "path:1"}), "acme:api");
}

TEST(Request, TreatsAnEmptyValueAsMissing) {
  const Attributes attributes = {{"header:x-empty", ""}, {"path", "/a?q="}, {"header:cookie", "idx=; b"}};
  for (const std::string_view source : {"ip", "apikey", "header:x-none", "header:x-empty", "cookie:idx", "cookie:b",
                                        "query:q", "query:none", "form:f", "path:2", "method", "host"}) {
    EXPECT_EQ(id(attributes, {source}), "missing") << source;
  }
  EXPECT_EQ(id({}, {"path:1"}), "root");
  EXPECT_EQ(id({{"path", "/"}}, {"path:1"}), "root");
}

TEST(Request, DifferentPartsNeverMakeTheSameId) {
  const auto pair = [](std::string_view a, std::string_view b) {
    return id({{"header:a", a}, {"header:b", b}}, {"header:a", "header:b"});
  };
  EXPECT_EQ(pair("a:b", "c"), "a%3Ab:c");
  EXPECT_EQ(pair("a", "b:c"), "a:b%3Ac");
  EXPECT_EQ(pair("a%3Ab", "c"), "a%253Ab:c");
  EXPECT_EQ(id({{"path", "/a%2Fb"}}, {"path"}), "/a%252Fb");
}

TEST(Request, ReplacesAValueOfOver256BytesByItsHash) {
  const std::string edge(bounds::id_bytes_max, 'x');
  EXPECT_EQ(id({{"header:a", edge}}, {"header:a"}), edge);
  EXPECT_TRUE(id({{"header:a", edge + "x"}}, {"header:a"}).starts_with("%sha256-"));
}

TEST(Request, FindsAnApiKeyInThreePlacesInOrder) {
  const auto key = [](const Attributes& attributes) { return id(attributes, {"apikey"}); };
  EXPECT_EQ(key({{"header:authorization", "ApiKey B"}, {"header:x-api-key", "A"}}), "A");
  EXPECT_EQ(key({{"header:authorization", "ApiKey  B"}}), "B");
  EXPECT_EQ(key({{"header:authorization", "Bearer C"}}), "C");
  EXPECT_EQ(key({{"header:authorization", "Basic Zm9v"}}), "missing");
  EXPECT_EQ(key({{"header:authorization", "Bearer"}}), "missing");
  EXPECT_EQ(key({{"header:authorization", "BearerC D"}}), "missing");
}

TEST(Request, IdentifiesAnIpv6ClientByItsPrefix) {
  EXPECT_EQ(id({{"ip", "2001:db8:1:2:3:4:5:6"}}, {"ip"}), "2001:db8:1:2::/64");
  EXPECT_EQ(id({{"ip", "2001:db8:1:2:ffff::1"}, {"path", "/a"}}, {"ip", "path:1"}), "2001:db8:1:2::/64:a");
}

TEST(Request, PrefersTheClientGivenByTheCaller) {
  const Attributes attributes = {{"ip", "10.0.0.1"}, {"header:x-forwarded-for", "1.2.3.4"}};
  EXPECT_EQ(id(attributes, {"ip"}), "10.0.0.1");
  EXPECT_TRUE(id({{"ip", "1.2.3"}}, {"ip"}).starts_with("\"1.2.3\" is not an IP address"));
}

TEST(Request, IgnoresForwardedForFromAnUntrustedPeer) {
  EXPECT_EQ(
      id({{"peer", "203.0.113.9"}, {"header:x-forwarded-for", "1.2.3.4"}, {"header:x-real-ip", "1.2.3.4"}}, {"ip"}),
      "203.0.113.9");
  EXPECT_EQ(
      id({{"peer", "10.0.0.1"}, {"header:x-forwarded-for", "6.6.6.6"}, {"header:x-forwarded-for", "1.2.3.4"}}, {"ip"}),
      "1.2.3.4");
  EXPECT_EQ(id({{"peer", "10.0.0.1"}, {"header:x-real-ip", "1.2.3.4"}}, {"ip"}), "1.2.3.4");
  EXPECT_EQ(id({{"peer", "10.0.0.1"}, {"header:x-real-ip", "1.2.3.4"}, {"header:x-real-ip", "6.6.6.6"}}, {"ip"}),
            "10.0.0.1")
      << "of two, one is forged";
}

TEST(Request, NormalizesTheHost) {
  const auto host = [](std::string_view text) { return id({{"host", text}}, {"host"}); };
  EXPECT_EQ(host("[2001:DB8::1]:80"), "[2001%3Adb8%3A%3A1]");
  EXPECT_EQ(host("example.com."), "example.com");
  EXPECT_EQ(host(":80"), "missing");
}

TEST(Request, LimitsTheNumberOfAttributes) {
  Attributes attributes(bounds::attributes_max, {"header:a", "1"});
  EXPECT_EQ(id(attributes, {"header:a"}), "1");
  attributes.push_back({"header:a", "1"});
  EXPECT_TRUE(id(attributes, {"header:a"}).starts_with("the request has more than"));
}

}  // namespace
}  // namespace weir::request_test
