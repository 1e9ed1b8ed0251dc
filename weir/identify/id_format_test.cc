#include "weir/identify/id_format.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "weir/base/bounds.h"
#include "weir/identify/digest.h"

namespace weir::id_format_test {
namespace {

IdShape shape(std::string_view spelling) {
  return IdShape::parse(spelling).value();
}

std::string refusal(std::string_view spelling) {
  const auto parsed = IdShape::parse(spelling);
  return parsed ? "" : parsed.error().detail;
}

std::string canonical(std::string_view spelling, std::string_view id) {
  const auto written = shape(spelling).canonical(id);
  return written ? *written : written.error().detail;
}

std::string display(std::string_view spelling, std::string_view id) {
  const auto written = shape(spelling).display(id);
  return written ? *written : written.error().detail;
}

Fault fault(std::string_view spelling, std::string_view id) {
  return shape(spelling).canonical(id).error().fault;
}

std::string repeat(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(IdShape, ReadsEverySpellingAndWritesItBack) {
  for (const std::string_view spelling :
       {"ipAddress", "ipv6RangeCIDR", "regId", "domain", "fqdnSet", "email", "text", "regId:domain", "regId:fqdnSet",
        "regId:ipAddress", "text:regId", "domain:text:regId"}) {
    EXPECT_EQ(shape(spelling).spelling(), spelling);
  }
  EXPECT_EQ(shape("text"), IdShape(IdFormat::text));
  EXPECT_EQ(shape("regId:fqdnSet").parts(), (std::vector{IdFormat::reg_id, IdFormat::fqdn_set}));
}

TEST(IdShape, ListsTheKnownFormatsWhenOneIsUnknown) {
  EXPECT_EQ(refusal("regid"),
            "\"regid\" is not an id format: it must be one of ipAddress, ipv6RangeCIDR, regId, domain, fqdnSet, email, "
            "text, or several of them joined by ':'");
  for (const std::string_view spelling : {"", ":", "regId:", ":regId", "regId::domain", "regId, domain", " regId"}) {
    EXPECT_FALSE(IdShape::parse(spelling)) << spelling;
  }
}

TEST(IdShape, RefusesTwoPartsThatMayContainAColon) {
  EXPECT_EQ(
      refusal("ipAddress:regId:text"),
      "id format \"ipAddress:regId:text\" is ambiguous: both ipAddress and text may hold a ':', so an id could be "
      "split in two ways");
  EXPECT_NE(refusal("text:text"), "");
  EXPECT_NE(refusal("ipv6RangeCIDR:ipAddress"), "");
}

TEST(IdShape, HasAtMostEightParts) {
  EXPECT_EQ(refusal(repeat("regId:", bounds::id_parts_max - 1) + "regId"), "");
  EXPECT_NE(refusal(repeat("regId:", bounds::id_parts_max) + "regId").find("has more than 8 parts"), std::string::npos);
}

TEST(IdFormat, WritesAnIpAddressInItsCanonicalForm) {
  EXPECT_EQ(canonical("ipAddress", "10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(canonical("ipAddress", "2001:0db8:0000:0000:0000:ff00:0042:8329"), "2001:db8::ff00:42:8329");
  EXPECT_EQ(canonical("ipAddress", "::ffff:10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(canonical("ipAddress", "10.0.0.0/8"),
            "\"10.0.0.0/8\" is not an IP address: one address is meant here, not a prefix");
}

TEST(IdFormat, AcceptsAnIpv6RangeOfExactly48Bits) {
  EXPECT_EQ(canonical("ipv6RangeCIDR", "2001:0db8:0000::/48"), "2001:db8::/48");
  EXPECT_EQ(canonical("ipv6RangeCIDR", "2001:DB8:1::/48"), "2001:db8:1::/48");
  EXPECT_EQ(canonical("ipv6RangeCIDR", "2001:db8::/47"),
            "\"2001:db8::/47\" is not an ipv6RangeCIDR: the prefix must be exactly /48");
  EXPECT_NE(canonical("ipv6RangeCIDR", "2001:db8::/49").find("exactly /48"), std::string::npos);
  EXPECT_NE(canonical("ipv6RangeCIDR", "2001:db8::").find("exactly /48"), std::string::npos);
  EXPECT_EQ(canonical("ipv6RangeCIDR", "10.0.0.0/8"),
            "\"10.0.0.0/8\" is not an ipv6RangeCIDR: it must be IPv6, not IPv4");
  EXPECT_EQ(canonical("ipv6RangeCIDR", "2001:db8:0:1::/48"),
            "\"2001:db8:0:1::/48\" is not an ipv6RangeCIDR: it has bits set after its first 48; write 2001:db8::/48");
  EXPECT_NE(canonical("ipv6RangeCIDR", "2001:db8::1/64").find("exactly /48"), std::string::npos);
  EXPECT_NE(canonical("ipv6RangeCIDR", "10.0.0.1/8").find("not IPv4"), std::string::npos);
  EXPECT_NE(canonical("ipv6RangeCIDR", "x/48").find("\"x/48\" is not an ipv6RangeCIDR: \"x\" is not an IP address"),
            std::string::npos);
}

TEST(IdFormat, AcceptsARegIdOfUpTo64Bits) {
  EXPECT_EQ(canonical("regId", "12345678"), "12345678");
  EXPECT_EQ(canonical("regId", "0"), "0");
  EXPECT_EQ(canonical("regId", "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(canonical("regId", "18446744073709551616"),
            "\"18446744073709551616\" is not a regId: it is more than 18446744073709551615, the largest 64-bit number");
  EXPECT_EQ(canonical("regId", "12x"), "\"12x\" is not a regId: only decimal digits are allowed");
  EXPECT_EQ(canonical("regId", ""), "\"\" is not a regId: it is empty");
  for (const std::string_view id : {"+1", "-1", " 1", "1 ", "0x1", "1.0", "1e3", "\u0661"}) {
    EXPECT_FALSE(shape("regId").canonical(id)) << id;
  }
}

TEST(IdFormat, CountsARegIdWithLeadingZerosInTheSameBucket) {
  EXPECT_EQ(canonical("regId", "007"), "7");
  EXPECT_EQ(canonical("regId", "000"), "0");
  EXPECT_EQ(canonical("regId", std::string(1000, '0') + "18446744073709551615"), "18446744073709551615");
}

TEST(IdFormat, WritesADomainInLowerCase) {
  EXPECT_EQ(canonical("domain", "Example.COM"), "example.com");
  EXPECT_EQ(canonical("domain", "example"),
            "\"example\" is not a domain: it needs at least two labels, as in \"example.com\"");
  EXPECT_FALSE(shape("domain").canonical("*.example.com")) << "a wildcard is a name of a set only";
}

TEST(FqdnSet, IsTheHashOfItsSortedNames) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"example.com", "a379a6f6eeafb9a55e378c118034e2751e682fab9f2d30ab13d2125586ce1947"},
      {"example.com,example.net", "f01cb09359ea414a5af7dfe1874e786bcf724605354eefd9df979bc995563cae"},
      {"example.org,example.com,example.net", "394e82811f52e2da38b970afdb21c9bc9af81060939c690183c00fce37408738"},
      {"example.co.uk,example.cn", "7c956936126b492845ddb48f4d220034509e7c0ad54ed2c1ba2650406846d9c3"},
  };
  for (const auto& [names, hash] : cases) EXPECT_EQ(canonical("fqdnSet", names), hash) << names;
}

TEST(FqdnSet, IsTheSameInAnyOrderCaseAndNumberOfRepeats) {
  const std::string hash = canonical("fqdnSet", "example.com,example.net");
  EXPECT_EQ(canonical("fqdnSet", "Example.NET,example.com,EXAMPLE.net"), hash);
  EXPECT_EQ(display("fqdnSet", "Example.NET,example.com,EXAMPLE.net"), "example.com,example.net");
}

TEST(FqdnSet, AcceptsWildcards) {
  EXPECT_EQ(display("fqdnSet", "example.com,*.Example.com"), "*.example.com,example.com");
  for (const std::string_view id :
       {"*", "*.", "*.com", "*.*.example.com", "a.*.example.com", "*example.com", "*.example.com."}) {
    EXPECT_FALSE(shape("fqdnSet").canonical(id)) << id;
  }
  const std::string label(63, 'a');
  const std::string base = label + "." + label + "." + label + ".";
  EXPECT_TRUE(shape("fqdnSet").canonical("*." + base + std::string(59, 'b')));
  EXPECT_EQ(fault("fqdnSet", "*." + base + std::string(60, 'b')), Fault::too_large);
}

TEST(FqdnSet, NamesTheInvalidMember) {
  EXPECT_EQ(
      canonical("fqdnSet", "example.com,b_c.com"),
      "\"example.com,b_c.com\" is not an fqdnSet: \"b_c.com\" is not a domain: only letters, digits, '-' and '.' are "
      "allowed");
  for (const std::string_view id :
       {"", ",", "example.com,", ",example.com", "example.com, example.net", "example.com,9.9.9.9"}) {
    EXPECT_FALSE(shape("fqdnSet").canonical(id)) << id;
  }
}

TEST(FqdnSet, HasAtMostAHundredNames) {
  std::string names = "n1.example.com";
  for (std::size_t i = 2; i <= bounds::fqdn_set_names_max; ++i) names += ",n" + std::to_string(i) + ".example.com";
  EXPECT_TRUE(shape("fqdnSet").canonical(names));
  EXPECT_EQ(fault("fqdnSet", names + ",one.example.com"), Fault::too_large);
}

TEST(FqdnSet, AcceptsItsOwnHashAsShownInLists) {
  const std::string hash = canonical("fqdnSet", "example.com");
  EXPECT_EQ(canonical("fqdnSet", hash), hash);
  EXPECT_EQ(display("fqdnSet", hash), hash);
  EXPECT_FALSE(shape("fqdnSet").canonical(hash.substr(1)));
  EXPECT_FALSE(shape("fqdnSet").canonical(hash + "0"));
}

TEST(Email, DropsTheTagAndLowersTheHostOnly) {
  EXPECT_EQ(canonical("email", "Joe@Example.COM"), "Joe@example.com");
  EXPECT_EQ(canonical("email", "joe+news@example.com"), "joe@example.com");
  EXPECT_EQ(canonical("email", "joe+a+b@example.com"), "joe@example.com");
  EXPECT_EQ(canonical("email", "joe+@example.com"), "joe@example.com");
  EXPECT_EQ(canonical("email", "jürgen.o'neil!@bücher.example"), "jürgen.o'neil!@xn--bcher-kva.example");
}

TEST(Email, ReportsEachBrokenRule) {
  EXPECT_EQ(canonical("email", "joe"), "\"joe\" is not an email: it must hold exactly one '@'");
  EXPECT_EQ(canonical("email", "a@b@example.com"), "\"a@b@example.com\" is not an email: it must hold exactly one '@'");
  EXPECT_EQ(canonical("email", "+a@example.com"),
            "\"+a@example.com\" is not an email: there is nothing before the '@' or the '+'");
  EXPECT_EQ(canonical("email", "joe@localhost"),
            "\"joe@localhost\" is not an email: \"localhost\" is not a domain: it needs at least two labels, as in "
            "\"example.com\"");
  for (const std::string_view id :
       {"", "@", "@example.com", "joe@", "j oe@example.com", "j\toe@example.com", "j\x7f@example.com",
        "\"joe\"@example.com", "a:b@example.com", "Joe <joe@example.com>", "j\xff@example.com", "joe@[192.0.2.1]",
        "joe@192.0.2.1", "joe@example.com ", "joe@*.example.com"}) {
    EXPECT_FALSE(shape("email").canonical(id)) << id;
  }
}

TEST(Email, EnforcesItsLimitsExactly) {
  EXPECT_TRUE(shape("email").canonical(std::string(64, 'a') + "@example.com"));
  EXPECT_EQ(fault("email", std::string(65, 'a') + "@example.com"), Fault::too_large);
  EXPECT_EQ(fault("email", std::string(60, 'a') + "+tags@example.com"), Fault::too_large) << "the tag counts";
  const std::string label(63, 'b');
  const std::string host = label + "." + label + "." + label + "." + std::string(10, 'c');  // 202 bytes
  EXPECT_EQ(canonical("email", std::string(51, 'a') + "@" + host).size(), bounds::email_bytes_max);
  EXPECT_EQ(fault("email", std::string(52, 'a') + "@" + host), Fault::too_large);
}

TEST(Text, IsOneTo256BytesOfUtf8WithoutControlCharacters) {
  EXPECT_EQ(canonical("text", "Acme Corp: 50% ü"), "Acme Corp: 50% ü");
  EXPECT_EQ(canonical("text", ""), "\"\" is not a text: it is empty");
  EXPECT_TRUE(shape("text").canonical("a"));
  EXPECT_TRUE(shape("text").canonical(std::string(256, 'a')));
  EXPECT_EQ(fault("text", std::string(257, 'a')), Fault::too_large);
  for (unsigned c = 0; c < 0x80; ++c) {
    const bool control = c < 0x20 || c == 0x7f;
    EXPECT_EQ(shape("text").canonical(std::string(1, static_cast<char>(c))).has_value(), !control) << c;
  }
  EXPECT_EQ(canonical("text", "a\nb"), "\"a\\x0ab\" is not a text: control characters are not allowed");
  EXPECT_EQ(canonical("text", "\u0085"), "\"\\xc2\\x85\" is not a text: control characters are not allowed");
  EXPECT_NE(canonical("email", "a\u009f@example.com").find("control characters are not allowed"), std::string::npos);
  EXPECT_EQ(canonical("text", "\u00a0"), "\u00a0");
  EXPECT_EQ(canonical("text", "a\xff"), "\"a\\xff\" is not a text: it is not valid UTF-8");
}

TEST(CompositeId, WritesEachPartInItsCanonicalForm) {
  EXPECT_EQ(canonical("regId:domain", "0012345678:Example.com"), "12345678:example.com");
  EXPECT_EQ(canonical("regId:fqdnSet", "12345678:example.org,example.com"),
            "12345678:" + sha256_hex("example.com,example.org"));
  EXPECT_EQ(display("regId:fqdnSet", "012345678:example.org,example.com"), "12345678:example.com,example.org");
}

TEST(CompositeId, IsSplitCorrectlyIfAPartContainsColons) {
  EXPECT_EQ(canonical("regId:ipAddress", "7:2001:db8::1"), "7:2001:db8::1");
  EXPECT_EQ(canonical("ipAddress:regId", "2001:db8::1:7"), "2001:db8::1:7");
  EXPECT_EQ(canonical("ipAddress:regId", "2001:0db8::1:07"), "2001:db8::1:7");
  EXPECT_EQ(canonical("regId:ipv6RangeCIDR:domain", "7:2001:db8::/48:example.com"), "7:2001:db8::/48:example.com");
  EXPECT_EQ(canonical("regId:text:regId", "1:a:b::c:2"), "1:a:b::c:2");
  EXPECT_EQ(canonical("regId:text:regId", "1:::2"), "1:::2");
}

TEST(CompositeId, NamesTheIdAndTheInvalidPart) {
  EXPECT_EQ(canonical("regId:domain", "12345678"),
            "\"12345678\" is not of the form regId:domain: it must have 2 parts joined by ':'");
  EXPECT_EQ(
      canonical("regId:domain", "12x:example.com"),
      "\"12x:example.com\" is not of the form regId:domain: \"12x\" is not a regId: only decimal digits are allowed");
  for (const std::string_view id :
       {"", ":", "7:", ":example.com", "7:example.com:8", "7:8:example.com", "example.com:7"}) {
    EXPECT_FALSE(shape("regId:domain").canonical(id)) << id;
  }
  EXPECT_FALSE(shape("regId:text:regId").canonical("1:2")) << "one ':' cannot serve twice";
}

TEST(Id, IsItsOwnCanonicalFormWhateverTheShape) {
  const auto spelling =
      rc::gen::element<std::string>("ipAddress", "ipv6RangeCIDR", "regId", "domain", "fqdnSet", "email", "text",
                                    "regId:domain", "regId:fqdnSet", "ipAddress:regId", "email:text:domain");
  const auto piece = rc::gen::element<std::string>("7", "007", ":", ":", ",", "@", "+", ".", "a", "B", "-", "*.", "/48",
                                                   "::", "2001:db8", "ffff", "10.0.0.1", "example.com", "Example.NET",
                                                   "joe@", "ü", "xn--bcher-kva", " ", "%", "\n");
  int accepted = 0;
  EXPECT_TRUE(rc::check([&] {
    const IdShape any = shape(*spelling);
    std::string id;
    for (const std::string& p : *rc::gen::container<std::vector<std::string>>(*rc::gen::inRange(1, 6), piece)) id += p;
    const auto once = any.canonical(id);
    const auto shown = any.display(id);
    RC_ASSERT(once.has_value() == shown.has_value());
    if (!once) return;
    ++accepted;
    RC_ASSERT(any.canonical(*once).value() == *once);
    RC_ASSERT(any.display(*shown).value() == *shown);
    RC_ASSERT(any.canonical(*shown).value() == *once);
  }));
  EXPECT_GT(accepted, 0) << "the generator makes some valid ids";
}

}  // namespace
}  // namespace weir::id_format_test
