#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "weir/store/memory/table.h"

namespace weir::table_footprint_test {
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

// 200 000 keys in a table for 50 million: nearly every group has just moved to larger pages.
class TableFootprint : public testing::TestWithParam<bool> {};

TEST_P(TableFootprint, GivesBackThePagesThatGroupsHaveOutgrown) {
  constexpr int kKeys = 200'000;
  const bool names = GetParam();
  const auto table = Table::create({.names = names, .huge_pages = false}, HashKey{1, 2});
  ASSERT_TRUE(table);
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(spend(**table, i).allowed);
  // Groups move in the first round. The pages they left are given back once they have stayed free for a round.
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

// Issue 14, row 19. Large enough for huge pages; the first 16 MiB are in ordinary ones.
TEST(TableNames, NamesOfDepartedClientsReturnTheirMemory) {
  constexpr int kKeys = 600'000;
  const auto table = Table::create({.names = true}, HashKey{1, 2});
  ASSERT_TRUE(table);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(spend(**table, i).allowed);
    if (i % 1'000 == 0) (*table)->maintain(kNow, 1);
  }
  const std::size_t full = (*table)->stats().bytes;
  const Duration gone = std::chrono::days{2};
  for (int round = 0; round < 3; ++round) {
    while (!(*table)->maintain({kNow.time + gone, kNow.wall + gone})) {
    }
  }
  EXPECT_EQ((*table)->stats().buckets, 0u);
  EXPECT_LE((*table)->stats().bytes, full / 8);
}

// Huge-page bytes of the mappings within [from, to).
std::size_t huge_bytes(const char* from, const char* to) {
  std::ifstream smaps("/proc/self/smaps");
  std::size_t total = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::size_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      inside = begin >= reinterpret_cast<std::uintptr_t>(from) && end <= reinterpret_cast<std::uintptr_t>(to);
    } else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kib) == 1) {
      total += kib << 10;
    }
  }
  return total;
}

bool kernel_gives_huge_pages() {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  auto region = Region::anonymous(kBytes);
  if (!region) return false;
  region->populate(0, kBytes, true);
  return huge_bytes(region->data(), region->data() + kBytes) == kBytes;
}

TEST(TableHugePages, GrowsIntoWholeHugePagesAndKeepsThem) {
  if (!kernel_gives_huge_pages()) GTEST_SKIP() << "the kernel gives no huge pages";
  constexpr int kKeys = 2'400'000;
  const auto table = Table::create({}, HashKey{1, 2});
  ASSERT_TRUE(table);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(spend(**table, i).allowed);
    if (i % 1'000 == 0) (*table)->maintain(kNow, 1);
  }
  for (int round = 0; round < 3; ++round) maintain_once_round(**table);
  const Region& region = (*table)->region();
  const std::size_t bytes = (*table)->stats().bytes;
  // The first 16 MiB are ordinary pages, and so is memory that was needed before it was populated.
  EXPECT_GE(huge_bytes(region.data(), region.data() + region.bytes_max()), bytes / 4);
  EXPECT_LE(bytes / kKeys, 32u);
}

}  // namespace
}  // namespace weir::table_footprint_test
