#include "weir/identify/prefix_map.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace weir::prefix_map_test {
namespace {

using Entries = std::vector<std::pair<IpPrefix, int>>;

IpAddress address(std::string_view text) {
  return IpAddress::parse(text).value();
}

PrefixMap<int> map_of(std::initializer_list<std::pair<std::string_view, int>> entries) {
  Entries parsed;
  for (const auto& [text, value] : entries) parsed.emplace_back(IpPrefix::parse(text).value(), value);
  return PrefixMap<int>::build(std::move(parsed)).value();
}

int found(const PrefixMap<int>& map, std::string_view text) {
  const int* value = map.find(address(text));
  return value == nullptr ? -1 : *value;
}

IpAddress numbered(std::uint32_t n) {
  return IpAddress::v4({static_cast<std::uint8_t>(n >> 24), static_cast<std::uint8_t>(n >> 16),
                        static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n)});
}

TEST(PrefixMap, FindsNothingWhenEmpty) {
  EXPECT_EQ(PrefixMap<int>().find(address("10.0.0.1")), nullptr);
  EXPECT_EQ(found(map_of({}), "::1"), -1);
}

TEST(PrefixMap, LetsTheMostSpecificPrefixWin) {
  const auto map = map_of({{"10.20.30.40/32", 4}, {"10.0.0.0/8", 1}, {"10.20.30.0/24", 3}, {"10.20.0.0/16", 2}});
  EXPECT_EQ(map.size(), 4u);
  EXPECT_EQ(found(map, "10.20.30.40"), 4);
  EXPECT_EQ(found(map, "10.20.30.41"), 3);
  EXPECT_EQ(found(map, "10.20.31.0"), 2);
  EXPECT_EQ(found(map, "10.21.0.0"), 1) << "past two nested ends at once";
  EXPECT_EQ(found(map, "10.0.0.0"), 1);
  EXPECT_EQ(found(map, "10.255.255.255"), 1);
  EXPECT_EQ(found(map, "11.0.0.0"), -1);
  EXPECT_EQ(found(map, "9.255.255.255"), -1);
}

TEST(PrefixMap, DistinguishesPrefixesThatStartAtTheSameAddress) {
  const auto map = map_of({{"0.0.0.0/0", 0}, {"0.0.0.0/1", 1}, {"0.0.0.0/32", 32}});
  EXPECT_EQ(found(map, "0.0.0.0"), 32);
  EXPECT_EQ(found(map, "0.0.0.1"), 1);
  EXPECT_EQ(found(map, "128.0.0.0"), 0);
  EXPECT_EQ(found(map, "255.255.255.255"), 0);
}

TEST(PrefixMap, SeparatesTheFamilies) {
  const auto map =
      map_of({{"0.0.0.0/0", 4}, {"2001:db8::/32", 6}, {"2001:db8::1", 61}, {"2001:db8:0:0:8000::/65", 65}});
  EXPECT_EQ(found(map, "::"), -1);
  EXPECT_EQ(found(map, "2001:db8::1"), 61);
  EXPECT_EQ(found(map, "2001:db8::2"), 6);
  EXPECT_EQ(found(map, "2001:db8::8000:0:0:0"), 65);
  EXPECT_EQ(found(map, "::ffff:10.0.0.1"), 4);
}

TEST(PrefixMap, FindsAWidePrefixBehindManyNarrowOnes) {
  constexpr std::uint32_t kTen = 10u << 24;
  constexpr int kNarrow = 200;
  Entries entries{{IpPrefix::of(numbered(kTen), 8), -8}};
  for (int i = 0; i < kNarrow; ++i)
    entries.emplace_back(IpPrefix::of(numbered(kTen + 2 * static_cast<unsigned>(i)), 32), i);
  const auto map = PrefixMap<int>::build(std::move(entries)).value();
  for (int i = 0; i < kNarrow; ++i) {
    const std::uint32_t n = kTen + 2 * static_cast<unsigned>(i);
    EXPECT_EQ(*map.find(numbered(n)), i);
    EXPECT_EQ(*map.find(numbered(n + 1)), -8);
  }
  EXPECT_EQ(map.find(numbered(kTen - 1)), nullptr);
  EXPECT_EQ(map.find(numbered(11u << 24)), nullptr);
}

TEST(PrefixMap, RefusesAPrefixGivenTwice) {
  Entries entries;
  for (const std::string_view text : {"10.0.0.0/8", "11.0.0.0/8", "::ffff:10.0.0.0/104"}) {
    entries.emplace_back(IpPrefix::parse(text).value(), 0);
  }
  EXPECT_EQ(PrefixMap<int>::build(entries).error(), (Error{Fault::invalid, "10.0.0.0/8 is given twice"}));
}

TEST(PrefixMap, LimitsTheNumberOfPrefixes) {
  Entries entries;
  entries.reserve(bounds::prefixes_max + 1);
  for (std::uint32_t n = 0; n < bounds::prefixes_max; ++n) {
    entries.emplace_back(IpPrefix::of(numbered(n << 12), 21), static_cast<int>(n));
  }
  const auto map = PrefixMap<int>::build(entries).value();
  for (std::uint32_t n = 0; n < bounds::prefixes_max; n += 997) {
    ASSERT_EQ(*map.find(numbered((n << 12) + 2047)), static_cast<int>(n));
    ASSERT_EQ(map.find(numbered((n << 12) + 2048)), nullptr);
  }
  entries.emplace_back(IpPrefix::parse("::/0").value(), 0);
  EXPECT_EQ(PrefixMap<int>::build(std::move(entries)).error(),
            (Error{Fault::too_large, "1048577 prefixes are more than 1048576"}));
}

TEST(PrefixMap, MatchesALinearSearch) {
  EXPECT_TRUE(rc::check([] {
    // Few distinct bytes, so that prefixes nest and addresses fall into them.
    const auto byte = rc::gen::element<std::uint8_t>(0, 1, 0x80, 0xff);
    const auto any = rc::gen::map(rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::container<IpAddress::Bytes>(byte)),
                                  [](const std::pair<bool, IpAddress::Bytes>& made) {
                                    const auto& b = made.second;
                                    return made.first ? IpAddress::v4({b[0], b[1], b[2], b[3]}) : IpAddress::v6(b);
                                  });
    const auto addresses = *rc::gen::container<std::vector<IpAddress>>(any);
    std::set<IpPrefix> prefixes;
    for (const IpAddress& a : addresses) prefixes.insert(IpPrefix::of(a, *rc::gen::inRange(0, a.width() + 1)));
    Entries entries;
    for (const IpPrefix& p : prefixes) entries.emplace_back(p, p.bits());
    std::reverse(entries.begin(), entries.end());
    const auto map = PrefixMap<int>::build(entries).value();

    auto asked = *rc::gen::container<std::vector<IpAddress>>(20, any);
    asked.insert(asked.end(), addresses.begin(), addresses.end());
    for (const IpAddress& a : asked) {
      int most = -1;
      for (const auto& [prefix, bits] : entries) most = prefix.contains(a) ? std::max(most, bits) : most;
      const int* value = map.find(a);
      RC_ASSERT((value == nullptr ? -1 : *value) == most);
    }
  }));
}

}  // namespace
}  // namespace weir::prefix_map_test
