#include <gtest/gtest.h>

#include <string>

#include "weir/store/memory/table.h"

namespace weir {
namespace {

constexpr Time kStart{std::chrono::hours{1}};
constexpr Now kNow{kStart, Wall{std::chrono::hours{1}}};
constexpr Limit kOnce = Limit::per_day(1);

Decision spend(Table& table, int id) {
  const std::string text = "client-" + std::to_string(1'000'000 + id);
  return table.spend(table.hash(Key{text}), Key{text}, kOnce, 1, kStart);
}

void maintain_once_round(Table& table) {
  while (!table.maintain(kNow)) {
  }
}

// 200 000 keys in a table for 50 million: nearly every group has just moved on to larger pages.
class TableFootprint : public testing::TestWithParam<bool> {};

TEST_P(TableFootprint, GivesBackThePagesThatGroupsHaveOutgrown) {
  constexpr int kKeys = 200'000;
  const bool names = GetParam();
  const auto table = Table::create({.names = names, .huge_pages = false}, HashKey{1, 2});
  ASSERT_TRUE(table);
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(spend(**table, i).allowed);
  // Groups move in the first round; what they left is given back when it has stayed free.
  for (int round = 0; round < 3; ++round) maintain_once_round(**table);
  EXPECT_LE((*table)->stats().bytes / kKeys, names ? 64u : 28u);

  const std::uint64_t rebuilds = (*table)->stats().rebuilds;
  for (int round = 0; round < 3; ++round) maintain_once_round(**table);
  EXPECT_EQ((*table)->stats().rebuilds, rebuilds) << "a table at rest stays where it is";
  EXPECT_EQ((*table)->stats().buckets, static_cast<std::uint64_t>(kKeys));
  for (int i = 0; i < kKeys; ++i) ASSERT_FALSE(spend(**table, i).allowed) << i;
}

INSTANTIATE_TEST_SUITE_P(Names, TableFootprint, testing::Bool(),
                         [](const auto& names) { return names.param ? "With" : "Without"; });

}  // namespace
}  // namespace weir
