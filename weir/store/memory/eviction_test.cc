// A table at its bound: new keys do not push it over, and evictions are counted.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "weir/store/memory/table.h"

namespace weir::eviction_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kSlow = Limit::per_day(6);

std::size_t listed(const Table& table) {
  std::size_t buckets = 0;
  for (std::size_t g = 0; g < table.groups(); ++g) table.visit(g, [&](const Table::Bucket&) { ++buckets; });
  return buckets;
}

TEST(Eviction, KeepsTheTableWithinItsBoundWhileTheForgottenComeBack) {
  for (const std::uint64_t bound : {1u, 2u, 10u, 100u, 3000u}) {
    const auto table =
        std::move(*Table::create({.buckets_max = bound, .names = false, .huge_pages = false}, HashKey{1, 2}));
    std::mt19937_64 random(bound);
    Time now{100s};
    // Known keys are as frequent as new keys.
    for (std::uint64_t i = 0; i < 20'000; ++i, now += 1ms) {
      const std::uint64_t newest = i / 2;
      const std::string text =
          "client-" + std::to_string(i % 2 == 0 ? newest : newest - random() % std::min(newest + 1, 2 * bound));
      const Key key{text};
      table->spend(table->hash(key), key, kSlow, 1, now);
      ASSERT_LE(table->stats().buckets, bound);
    }
    EXPECT_EQ(listed(*table), bound);
    EXPECT_GE(table->stats().evicted, 10'000 - bound);
  }
}

TEST(Eviction, TheNamesOfWhoeverIsLeftAreKept) {
  for (const std::uint64_t bound : {1u, 10u, 5000u, 30'000u}) {
    const auto table = std::move(*Table::create({.buckets_max = bound, .names = true}, HashKey{1, 2}));
    const std::uint64_t strangers = std::max<std::uint64_t>(bound * 12, 200);
    for (std::uint64_t i = 0; i < strangers; ++i) {
      const std::string text = "client-" + std::to_string(i);
      table->spend(table->hash(Key{text}), Key{text}, kSlow, 1, Time{100s});
    }
    std::size_t named = 0;
    for (std::size_t g = 0; g < table->groups(); ++g) {
      table->visit(g, [&](const Table::Bucket& bucket) { named += bucket.name.starts_with("client-") ? 1 : 0; });
    }
    EXPECT_EQ(named, bound);
  }
}

TEST(Eviction, ExpiredBucketsMakeRoomWithoutBeingCountedAsEvicted) {
  constexpr Limit kFast = Limit::per_second(20);
  const auto table =
      std::move(*Table::create({.buckets_max = 100, .names = false, .huge_pages = false}, HashKey{1, 2}));
  Time now{100s};
  for (int i = 0; i < 10'000; ++i, now += 1s) {
    const std::string text = "client-" + std::to_string(i);
    table->spend(table->hash(Key{text}), Key{text}, kFast, 20, now);
    ASSERT_LE(table->stats().buckets, 100u);
  }
  EXPECT_EQ(table->stats().evicted, 0u);
}

}  // namespace
}  // namespace weir::eviction_test
