#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/store/memory/table.h"

namespace weir::table_batch_test {
namespace {

constexpr Time kStart{std::chrono::hours{1}};

TEST(TableBatch, AnswersAsThatManySpendsWould) {
  constexpr Limit kLimits[] = {Limit::per_second(10).with_burst(3), Limit::per_hour(100)};
  const auto batched = Table::create({.buckets_max = 10'000}, HashKey{1, 2});
  const auto single = Table::create({.buckets_max = 10'000}, HashKey{1, 2});
  ASSERT_TRUE(batched && single);
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i) texts.push_back("key:" + std::to_string(i));
  Time now = kStart;
  // Sizes around one and two times the lines that are prefetched at once. Keys repeat within a batch and between
  // batches.
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 32u, 33u, 200u}) {
    std::vector<Table::Spend> asked;
    for (std::size_t i = 0; i < size; ++i)
      asked.push_back({texts[i * 7 % texts.size()], &kLimits[i % 2], static_cast<Count>(i % 4)});
    std::vector<Decision> decisions(size + 1, Decision{.burst = -1});
    (*batched)->hash(asked);
    (*batched)->spend_batch(asked, now, decisions.data());
    for (std::size_t i = 0; i < size; ++i) {
      const Key key{asked[i].key};
      EXPECT_EQ(asked[i].h, (*single)->hash(key));
      EXPECT_EQ(decisions[i], (*single)->spend((*single)->hash(key), key, *asked[i].limit, asked[i].cost, now))
          << i << " of " << size;
    }
    EXPECT_EQ(decisions[size].burst, -1) << "wrote past the end";
    now += std::chrono::milliseconds{30};
  }
}

TEST(TableBatch, FindsKeysWhoseLinesOverflowed) {
  constexpr Limit kOnce = Limit::per_day(1);
  const auto table = Table::create({.buckets_max = 100'000}, HashKey{1, 2});
  ASSERT_TRUE(table);
  std::vector<std::string> texts;
  for (int i = 0; i < 50'000; ++i) texts.push_back("key:" + std::to_string(i));
  std::vector<Table::Spend> asked;
  for (const std::string& text : texts) asked.push_back({text, &kOnce, 1});
  std::vector<Decision> decisions(asked.size());
  (*table)->hash(asked);
  (*table)->spend_batch(asked, kStart, decisions.data());
  for (const Decision& decision : decisions) ASSERT_TRUE(decision.allowed);
  (*table)->spend_batch(asked, kStart, decisions.data());
  for (const Decision& decision : decisions) ASSERT_FALSE(decision.allowed);
  EXPECT_EQ((*table)->stats().buckets, texts.size());
}

}  // namespace
}  // namespace weir::table_batch_test
