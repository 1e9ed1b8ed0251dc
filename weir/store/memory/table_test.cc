#include "weir/store/memory/table.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/algorithm/gcra.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwenty = Limit::per_second(20);
constexpr HashKey kSeed{1, 2};

std::unique_ptr<Table> make(std::uint64_t buckets_max, bool names = false) {
  return std::move(*Table::create({.buckets_max = buckets_max, .names = names, .huge_pages = false}, kSeed));
}

Decision spend(Table& table, std::string_view key, Time now, const Limit& limit = kTwenty, Count cost = 1) {
  return table.spend(table.hash(Key{key}), Key{key}, limit, cost, now);
}

TEST(Table, DecidesLikeTheAlgorithmAlone) {
  auto table = make(1000);
  Time tat{};
  for (int i = 0; i < 200; ++i) {
    const Time now{10s + i * 7ms};
    const Step step = gcra::spend(kTwenty, tat, 1, now);
    tat = step.tat;
    EXPECT_EQ(spend(*table, "a", now), step.decision) << i;
  }
}

TEST(Table, GrowsFromNothingToAMillionWithoutForgettingAnybody) {
  constexpr int kKeys = 1'000'000;
  auto table = make(2'000'000);
  const Time now{10s};
  constexpr Limit kOne = Limit::per_hour(2);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "client-" + std::to_string(i);
      ASSERT_EQ(spend(*table, key, now, kOne).allowed, round < 2) << key << " round " << round;
    }
  }
  const Table::Stats stats = table->stats();
  EXPECT_EQ(stats.buckets, kKeys);
  EXPECT_EQ(stats.evicted, 0);
  std::printf("bytes per bucket %.1f, rebuilds %lu, moved %lu\n", double(stats.bytes) / kKeys, stats.rebuilds,
              stats.moved);
}

}  // namespace
}  // namespace weir
