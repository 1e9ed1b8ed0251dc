#include "weir/known/access_list.h"

#include <gtest/gtest.h>

#include <chrono>

#include "weir/base/bounds.h"

namespace weir::access_list_test {
namespace {

using namespace std::chrono_literals;
using List = AccessEntry::List;

constexpr Wall kNow{1000s};

IpPrefix prefix(std::string_view text) {
  return IpPrefix::parse(text).value();
}

AccessEntry ip(List list, std::string_view text, std::optional<Wall> expires = {}) {
  AccessEntry entry;
  entry.list = list;
  entry.ip = prefix(text);
  entry.expires = expires;
  entry.reason = std::string(text);
  return entry;
}

AccessEntry apikey(List list, std::string key) {
  AccessEntry entry;
  entry.list = list;
  entry.apikey = std::move(key);
  return entry;
}

AccessEntry named(List list, std::string limit, std::string id) {
  AccessEntry entry;
  entry.list = list;
  entry.limit = std::move(limit);
  entry.id = std::move(id);
  return entry;
}

AccessList build(std::vector<AccessEntry> entries) {
  return AccessList::build(std::move(entries)).value();
}

TEST(AccessList, MatchesEveryAddressOfAPrefixAndNoOther) {
  const AccessList list = build({ip(List::deny, "203.0.113.0/24"), ip(List::allow, "10.1.0.0/16")});
  EXPECT_NE(list.find_ip(List::deny, prefix("203.0.113.255"), kNow), nullptr);
  EXPECT_EQ(list.find_ip(List::deny, prefix("203.0.114.0"), kNow), nullptr);
  EXPECT_EQ(list.find_ip(List::deny, prefix("10.1.2.3"), kNow), nullptr) << "another list's entry";
  EXPECT_NE(list.find_ip(List::allow, prefix("10.1.2.3"), kNow), nullptr);
}

TEST(AccessList, EntryExpiresAtItsTime) {
  const AccessList list = build({ip(List::deny, "192.0.2.1", kNow)});
  EXPECT_NE(list.find_ip(List::deny, prefix("192.0.2.1"), kNow - 1ns), nullptr);
  EXPECT_EQ(list.find_ip(List::deny, prefix("192.0.2.1"), kNow), nullptr);
}

TEST(AccessList, WiderEntryStillAppliesWhenANarrowerOneHasExpired) {
  const AccessList list = build({ip(List::deny, "10.0.0.0/8"), ip(List::deny, "10.1.0.0/16", kNow)});
  const AccessEntry* const found = list.find_ip(List::deny, prefix("10.1.2.3"), kNow);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->reason, "10.0.0.0/8");
}

TEST(AccessList, MatchesAClientPrefixOnlyAsAWhole) {
  const AccessList list = build({ip(List::deny, "2001:db8::/128"), ip(List::deny, "2001:db8:1::/48")});
  EXPECT_EQ(list.find_ip(List::deny, prefix("2001:db8::/64"), kNow), nullptr);
  EXPECT_NE(list.find_ip(List::deny, prefix("2001:db8::"), kNow), nullptr);
  EXPECT_NE(list.find_ip(List::deny, prefix("2001:db8:1:2::/64"), kNow), nullptr);
}

TEST(AccessList, DistinguishesApiKeysFromIdsOfLimits) {
  const AccessList list = build({apikey(List::deny, "x"), named(List::deny, "orders", "7")});
  EXPECT_NE(list.find_apikey(List::deny, "x", kNow), nullptr);
  EXPECT_EQ(list.find_apikey(List::deny, "7", kNow), nullptr);
  EXPECT_NE(list.find_id(List::deny, {"orders", "7"}, kNow), nullptr);
  EXPECT_EQ(list.find_id(List::deny, {"orders", "x"}, kNow), nullptr);
  EXPECT_EQ(list.find_id(List::deny, {"others", "7"}, kNow), nullptr);
  EXPECT_EQ(list.find_id(List::allow, {"orders", "7"}, kNow), nullptr);
}

TEST(AccessList, FindsEverythingAfterAMove) {
  AccessList first = build({apikey(List::allow, "k"), named(List::allow, "a", "b")});
  const AccessList second = std::move(first);
  EXPECT_NE(second.find_apikey(List::allow, "k", kNow), nullptr);
  EXPECT_NE(second.find_id(List::allow, {"a", "b"}, kNow), nullptr);
}

TEST(AccessList, RefusesTheSameClientTwiceInOneList) {
  EXPECT_EQ(AccessList::build({ip(List::deny, "10.0.0.0/8"), ip(List::deny, "10.0.0.0/8")}).error().detail,
            "10.0.0.0/8 is given twice");
  EXPECT_EQ(AccessList::build({named(List::deny, "a", "b"), named(List::deny, "a", "b")}).error().detail,
            "\"a:b\" is given twice");
  EXPECT_EQ(AccessList::build({apikey(List::deny, "s3cret"), apikey(List::deny, "s3cret")}).error().detail,
            "an apikey is given twice");
  EXPECT_TRUE(AccessList::build({ip(List::deny, "10.0.0.0/8"), ip(List::allow, "10.0.0.0/8")}));
}

TEST(AccessEntry, NamesExactlyOneKindOfClient) {
  EXPECT_TRUE(check(ip(List::deny, "10.0.0.0/8")));
  EXPECT_TRUE(check(apikey(List::deny, "k")));
  EXPECT_TRUE(check(named(List::deny, "a", "b")));
  EXPECT_FALSE(check(AccessEntry{}));
  EXPECT_FALSE(check(named(List::deny, "a", "")));
  EXPECT_FALSE(check(named(List::deny, "", "b")));
  AccessEntry both = ip(List::deny, "10.0.0.0/8");
  both.apikey = "k";
  EXPECT_FALSE(check(both));
}

TEST(AccessEntry, LimitsTheLengthOfTexts) {
  EXPECT_TRUE(check(apikey(List::deny, std::string(bounds::id_bytes_max, 'k'))));
  EXPECT_FALSE(check(apikey(List::deny, std::string(bounds::id_bytes_max + 1, 'k'))));
  AccessEntry entry = apikey(List::deny, "k");
  entry.reason.assign(bounds::reason_bytes_max, 'r');
  entry.added_by.assign(bounds::added_by_bytes_max, 'a');
  EXPECT_TRUE(check(entry));
  entry.reason += 'r';
  EXPECT_EQ(check(entry).error().detail, "reason of an access entry has at most 256 bytes");
  entry.reason.clear();
  entry.added_by += 'a';
  EXPECT_FALSE(check(entry));
}

}  // namespace
}  // namespace weir::access_list_test
