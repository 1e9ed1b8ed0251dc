// The horizon: a thread with an old clock reading cannot spend a forgotten bucket twice, and a bucket that is revived
// while its group is cleaned is kept.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "weir/store/memory/table.h"

namespace weir::horizon_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwenty = Limit::per_second(20);

std::unique_ptr<Table> make(std::uint64_t buckets_max) {
  return std::move(*Table::create({.buckets_max = buckets_max, .names = false, .huge_pages = false}, HashKey{1, 2}));
}

int spend_all(Table& table, std::string_view text, Time now) {
  const Key key{text};
  int allowed = 0;
  while (allowed < 1000 && table.spend(table.hash(key), key, kTwenty, 1, now).allowed) ++allowed;
  return allowed;
}

void clean(Table& table, Time now) {
  while (!table.maintain({now, Wall{now.time_since_epoch()}})) {
  }
}

TEST(Horizon, AThreadWithAnOldReadingCannotSpendAForgottenBucketTwice) {
  auto table = make(1000);
  const Time early{10s};
  ASSERT_EQ(spend_all(*table, "a", early), 20);
  const Time late{13s};
  // Use enough other keys that the group is rebuilt without "a".
  for (int i = 0; i < 100; ++i) spend_all(*table, "other-" + std::to_string(i), early);
  clean(*table, late);
  ASSERT_EQ(table->stats().buckets, 0u) << "the bucket was not forgotten, so this test shows nothing";

  // At the old reading the bucket was empty. It is forgotten, so the first spend is decided at the horizon, one second
  // before `late`. After that the bucket exists again, with a TAT further ahead of the old reading than a window, and
  // denies.
  const Time horizon{Duration{table->header().horizon.load()}};
  EXPECT_EQ(horizon, late - 1s);
  EXPECT_EQ(spend_all(*table, "a", early), 1);
  EXPECT_EQ(spend_all(*table, "a", horizon), 19);
  EXPECT_EQ(table->peek(table->hash(Key{"a"}), kTwenty, 1, horizon).reset_after, 1s);
}

TEST(Horizon, TrailsTheClockSoThatARecentReadingStillFindsItsBucket) {
  auto table = make(1000);
  const Time now{10s};
  ASSERT_EQ(spend_all(*table, "a", now), 20);
  clean(*table, now + 1999ms);  // the bucket is full since 11 s, but the horizon has not reached 11 s
  EXPECT_EQ(spend_all(*table, "a", now), 0);
}

TEST(Horizon, NeverRunsBack) {
  auto table = make(1000);
  clean(*table, Time{50s});
  clean(*table, Time{20s});
  EXPECT_EQ(table->header().horizon.load(), Duration{49s}.count());
}

// A group is measured, then moved. In between, its expired buckets may be spent from again, more of them than the
// measured shape has room for. None may be lost.
TEST(Horizon, ExpiredBucketsThatComeBackWhileTheirGroupShrinksAreKept) {
  constexpr int kKeys = 8000;
  auto table = make(12'000);  // one group
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back("client-" + std::to_string(i));
  Time now{10s};
  for (int round = 0; round < 40; ++round, now += 100s) {
    for (const auto& key : keys) table->spend(table->hash(Key{key}), Key{key}, kTwenty, 1, now);
    const Time later = now + 50s;
    std::atomic<bool> cleaning{true};
    std::thread cleaner([&] {
      for (int i = 0; i < 3; ++i) clean(*table, later);
      cleaning = false;
    });
    // The horizon is raised just before the groups are measured.
    while (table->header().horizon.load() < Duration{(later - 1s).time_since_epoch()}.count()) {
    }
    int next = 0;
    while (cleaning && next < kKeys) {
      const Key key{keys[static_cast<std::size_t>(next++)]};
      table->spend(table->hash(key), key, kTwenty, 20, later);
    }
    cleaner.join();
    for (int i = 0; i < next; ++i) {
      const Key key{keys[static_cast<std::size_t>(i)]};
      ASSERT_FALSE(table->peek(table->hash(key), kTwenty, 1, later).allowed) << key.text;
    }
  }
}

}  // namespace
}  // namespace weir::horizon_test
