#include "weir/policy/override_table.h"

#include <gtest/gtest.h>

namespace weir::override_table_test {
namespace {

TEST(OverrideTable, FindsWhatWasAddedAndNothingElse) {
  OverrideTable table;
  EXPECT_EQ(table.find("a"), nullptr);
  for (int i = 0; i < 10'000; ++i) {
    Override value;
    value.quota.size = i;
    const auto added = table.add("id" + std::to_string(i), value, {static_cast<std::uint32_t>(i), 1});
    EXPECT_TRUE(added.fresh);
    EXPECT_EQ(added.index, static_cast<std::uint32_t>(i));
  }
  for (int i = 0; i < 10'000; ++i) {
    const Override* found = table.find("id" + std::to_string(i));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->quota.size, i);
  }
  EXPECT_EQ(table.find("id10000"), nullptr);
  EXPECT_EQ(table.find(""), nullptr);
  EXPECT_EQ(table.id(7), "id7");
  EXPECT_EQ(table.place(7).line, 7u);
}

TEST(OverrideTable, KeepsTheFirstOfTwoAndSaysWhichItWas) {
  OverrideTable table;
  table.add("a", {}, {1, 1});
  table.add("b", {}, {2, 1});
  const auto again = table.add("b", {}, {3, 1});
  EXPECT_FALSE(again.fresh);
  EXPECT_EQ(again.index, 1u);
  EXPECT_EQ(table.size(), 2u);
}

TEST(OverrideTable, HoldsMoreThanItMadeRoomFor) {
  for (const std::size_t reserved : {1u, 7u, 8u, 9u, 1000u}) {
    OverrideTable table;
    table.prefetch("u0");  // an empty table has nothing to prefetch
    table.reserve(reserved, 2 * reserved);
    for (std::uint32_t i = 0; i < 100; ++i) {
      const std::string id = "u" + std::to_string(i);
      table.prefetch(id);
      const OverrideTable::Added added = table.add(id, Override{}, {i, 1});
      EXPECT_TRUE(added.fresh);
      EXPECT_EQ(added.index, i);
    }
    table.reserve(200, 1000);
    for (std::uint32_t i = 0; i < 100; ++i) {
      EXPECT_NE(table.find("u" + std::to_string(i)), nullptr);
      EXPECT_EQ(table.place(i).line, i);
    }
    EXPECT_EQ(table.find("u100"), nullptr);
    EXPECT_EQ(table.size(), 100u);
  }
}

}  // namespace
}  // namespace weir::override_table_test
