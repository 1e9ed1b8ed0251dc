#include "weir/identify/domain.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "weir/base/bounds.h"

namespace weir::domain_test {
namespace {

std::string written(std::string_view name) {
  const auto domain = canonical_domain(name);
  return domain ? *domain : domain.error().detail;
}

// "a.a.….com" of that many labels.
std::string labels(std::size_t count) {
  std::string name;
  for (std::size_t i = 1; i < count; ++i) name += "a.";
  return name + "com";
}

// Three labels of 63 and a last one, together that many bytes long.
std::string name_of_bytes(std::size_t bytes) {
  const std::string label(63, 'a');
  const std::string front = label + "." + label + "." + label + ".";
  return front + std::string(bytes - front.size(), 'b');
}

TEST(Domain, IsWrittenInLowerCase) {
  EXPECT_EQ(written("example.com"), "example.com");
  EXPECT_EQ(written("WWW.Example.COM"), "www.example.com");
  EXPECT_EQ(written("a-b.3com.x1"), "a-b.3com.x1");
  EXPECT_EQ(written("co.uk"), "co.uk") << "a public suffix is a domain as well";
}

TEST(Domain, ReportsEachBrokenRule) {
  const std::string wide(64, 'a');
  const std::pair<std::string, std::string> cases[] = {
      {"", "it is empty"},
      {"localhost", "it needs at least two labels, as in \"example.com\""},
      {"example.com.", "it must be written without the final '.'"},
      {".", "it must be written without the final '.'"},
      {".example.com", "a label is empty"},
      {"a..com", "a label is empty"},
      {"-a.com", "a label begins or ends with '-'"},
      {"a-.com", "a label begins or ends with '-'"},
      {"a.-", "a label begins or ends with '-'"},
      {"a_b.com", "only letters, digits, '-' and '.' are allowed"},
      {"a b.com", "only letters, digits, '-' and '.' are allowed"},
      {"*.example.com", "only letters, digits, '-' and '.' are allowed"},
      {"example.com:80", "only letters, digits, '-' and '.' are allowed"},
      {"1.2.3.4", "it is an IP address"},
      {wide + ".com", "a label is longer than 63 bytes"},
      {labels(11), "it has more than 10 labels"},
      {"ab--cd.com", "a label has \"--\" in third place, which is reserved"},
      {"xn--abc-.com", "a label begins or ends with '-'"},
      {"xn--a.com", "a label that begins with \"xn--\" is not a valid A-label"},
  };
  for (const auto& [name, rule] : cases) EXPECT_EQ(written(name), "\"" + name + "\" is not a domain: " + rule);
  EXPECT_FALSE(canonical_domain(std::string_view("a\0.com", 6)));
  EXPECT_FALSE(canonical_domain(std::string_view("\xc3\xbc\0.com", 7)));
}

TEST(Domain, EnforcesItsLimitsExactly) {
  EXPECT_TRUE(canonical_domain(std::string(63, 'a') + ".com"));
  EXPECT_FALSE(canonical_domain(std::string(64, 'a') + ".com"));
  EXPECT_TRUE(canonical_domain(labels(bounds::domain_labels_max)));
  EXPECT_FALSE(canonical_domain(labels(bounds::domain_labels_max + 1)));
  EXPECT_TRUE(canonical_domain(labels(2)));
  EXPECT_TRUE(canonical_domain(name_of_bytes(bounds::domain_bytes_max)));
  EXPECT_EQ(canonical_domain(name_of_bytes(bounds::domain_bytes_max + 1)).error().fault, Fault::too_large);
  EXPECT_EQ(canonical_domain(std::string(10'000'000, 'a')).error().fault, Fault::too_large);
}

TEST(Domain, ConvertsOtherScriptsToALabels) {
  EXPECT_EQ(written("bücher.example"), "xn--bcher-kva.example");
  EXPECT_EQ(written("BÜCHER.Example"), "xn--bcher-kva.example");
  EXPECT_EQ(written("bu\u0308cher.example"), "xn--bcher-kva.example") << "composed first";
  EXPECT_EQ(written("xn--bcher-kva.example"), "xn--bcher-kva.example");
  EXPECT_EQ(written("XN--BCHER-KVA.example"), "xn--bcher-kva.example");
  EXPECT_EQ(written("faß.de"), "xn--fa-hia.de") << "IDNA2008 keeps the sharp s";
  EXPECT_EQ(written("例え。テスト"), "xn--r8jz45g.xn--zckzah");
}

TEST(Domain, RefusesNamesThatIdna2008Refuses) {
  EXPECT_EQ(written("💩.la"), "\"💩.la\" is not a domain: it is not a valid internationalized name (IDNA2008)");
  for (const std::string_view name :
       {"xn--ls8h.la", "☃.com", "xn--n3h.com", "\u200d.de", "-ü.de", "ü-.de", "xn----eha.de", "a_ü.de", "xn--a_-yka.de",
        "ü..de", "ü.de.", "\u0308a.de", "\xff.de", "ü\xc3.de", "http://ü.de", "xn--.de", "xn--\u00fc.de",
        "xn--bcher-kva8445foa.de-", "ab--ü.de"}) {
    EXPECT_FALSE(canonical_domain(name)) << name;
  }
  EXPECT_EQ(written("a_ü.de"), "\"a_ü.de\" is not a domain: only letters, digits, '-' and '.' are allowed");
  EXPECT_EQ(written("a＿b.de"), "\"a＿b.de\" is not a domain: only letters, digits, '-' and '.' are allowed");
  EXPECT_EQ(written("１.２.３.４"), "\"１.２.３.４\" is not a domain: it is an IP address") << "also after mapping";
}

TEST(Domain, IsItsOwnCanonicalForm) {
  const auto piece = rc::gen::element<std::string>("a", "B", "-", ".", ".", "xn--", "bcher-kva", "ü", "Ü", "ß", "テ",
                                                   "é", "1", "e\u0301", "\u00ad", "。", "\u0660", "א", "\u200d");
  EXPECT_TRUE(rc::check([&] {
    std::string name;
    for (const std::string& p : *rc::gen::container<std::vector<std::string>>(piece)) name += p;
    const auto once = canonical_domain(name + ".com");
    if (!once) return;
    RC_ASSERT(canonical_domain(*once).value() == *once);
  }));
}

TEST(RegisteredDomain, IsThePublicSuffixAndOneLabel) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"example.com", "example.com"},
      {"WWW.example.com", "example.com"},
      {"a.b.example.co.uk", "example.co.uk"},
      {"a.b.github.io", "b.github.io"},      // the private section counts
      {"github.io", "github.io"},            // a suffix is kept
      {"co.uk", "co.uk"},                    //
      {"b.c.kobe.jp", "b.c.kobe.jp"},        // *.kobe.jp
      {"www.city.kobe.jp", "city.kobe.jp"},  // !city.kobe.jp
      {"a.b.nosuchtld", "b.nosuchtld"},      // the rule "*"
      {"www.食狮.公司.cn", "xn--85x722f.xn--55qx5d.cn"},
  };
  for (const auto& [name, registered] : cases) EXPECT_EQ(registered_domain(name).value(), registered) << name;
  EXPECT_FALSE(registered_domain("com"));
  EXPECT_FALSE(registered_domain("192.0.2.1"));
}

}  // namespace
}  // namespace weir::domain_test
