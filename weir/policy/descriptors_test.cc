#include "weir/policy/descriptors.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::descriptors_test {
namespace {

TEST(Descriptors, AStarStandsForAnyCharacters) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("/api/*", "/api/"));
  EXPECT_TRUE(matches("/api/*", "/api/a/b"));
  EXPECT_FALSE(matches("/api/*", "/api"));
  EXPECT_TRUE(matches("a*c*e", "abcde"));
  EXPECT_TRUE(matches("a*c*e", "ace"));
  EXPECT_TRUE(matches("a*c*e", "acbcde"));
  EXPECT_FALSE(matches("a*c*e", "abde"));
  EXPECT_FALSE(matches("a*c*e", "acef"));
  EXPECT_TRUE(matches("*b", "aab"));
  EXPECT_TRUE(matches("**", "x"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_TRUE(matches("", ""));
}

// Backtracking only to the last star avoids exponential time.
TEST(Descriptors, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "*b", std::string(5000, 'a')));
  EXPECT_TRUE(matches(pattern, std::string(5000, 'a')));
}

TEST(Descriptors, IdsOfCallersNumbersKeepKeysAndValuesApart) {
  const auto id_of = [](std::initializer_list<Attribute> entries) {
    std::string id;
    DescriptorTable::write_own_id({entries.begin(), entries.size()}, id);
    return id;
  };
  EXPECT_EQ(id_of({{"a", "b:c"}, {"d", ""}}), "a:b%3Ac:d:%");
  EXPECT_NE(id_of({{"a", ""}, {"b", "c"}}), id_of({{"a", "%"}, {"b", "c"}}));
}

}  // namespace
}  // namespace weir::descriptors_test
