// Many threads on one table, during growth, cleaning, eviction and slot reuse. Each test counts exactly, and fails if
// the races that it needs did not happen.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "weir/algorithm/gcra.h"
#include "weir/base/clock.h"
#include "weir/store/memory/charging.h"
#include "weir/store/memory/table.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

// ThreadSanitizer is about ten times slower but needs the same interleavings.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr int kScale = 1;
#else
constexpr int kScale = 5;
#endif
#else
constexpr int kScale = 5;
#endif

constexpr int kThreads = 4;

std::unique_ptr<Table> make(std::uint64_t buckets_max) {
  return std::move(*Table::create({.buckets_max = buckets_max, .names = true, .huge_pages = false}, HashKey{7, 11}));
}

Decision spend(Table& table, const std::string& key, const Limit& limit, Time now) {
  return table.spend(table.hash(Key{key}), Key{key}, limit, 1, now);
}

template <class Body>
void on_threads(int count, Body body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

void print(const char* test, const Table::Stats& stats) {
  std::printf("%s: %lu lost races, %lu waits, %lu rebuilds, %lu moved, %lu buckets, %lu evicted\n", test,
              static_cast<unsigned long>(stats.lost_races), static_cast<unsigned long>(stats.waits),
              static_cast<unsigned long>(stats.rebuilds), static_cast<unsigned long>(stats.moved),
              static_cast<unsigned long>(stats.buckets), static_cast<unsigned long>(stats.evicted));
}

TEST(TableStress, OneKeyAdmitsExactlyItsBurstWhateverTheThreads) {
  constexpr Count kBurst = 50'000;
  constexpr Limit kLimit = Limit::per_hour(kBurst);
  std::uint64_t lost_races = 0;
  // Races are random: repeat until one was seen, up to a bound.
  for (int round = 0; round < 50 && (round < kScale || lost_races == 0); ++round) {
    auto table = make(1000);
    std::atomic<Count> admitted{0};
    on_threads(kThreads, [&](int) {
      Count mine = 0;
      for (Count i = 0; i < kBurst; ++i) mine += spend(*table, "hot", kLimit, Time{10s}).allowed ? 1 : 0;
      admitted += mine;
    });
    ASSERT_EQ(admitted.load(), kBurst);
    lost_races += table->stats().lost_races;
    print("one key", table->stats());
  }
  EXPECT_GT(lost_races, 0u);
}

TEST(TableStress, NoChargeIsLostWhileTheTableGrowsAndShrinks) {
  constexpr Count kBurst = 3;
  constexpr Limit kLimit = Limit::per_hour(kBurst);
  constexpr int kKeys = 20'000 * kScale;
  auto table = make(1'000'000);
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back("client-" + std::to_string(i));
  std::vector<std::atomic<Count>> admitted(kKeys);
  std::atomic<bool> done{false};
  std::thread keeper([&] {
    while (!done) table->maintain(Now{Time{10s}, Wall{}}, 16);
  });
  // All threads together ask each key for twice its burst, each thread in its own order around one moving front.
  on_threads(kThreads, [&](int t) {
    std::mt19937 random(static_cast<unsigned>(t));
    for (int i = 0; i < kKeys * 2 * kBurst / kThreads; ++i) {
      const int front = static_cast<int>(static_cast<long>(i) * kKeys / (kKeys * 2 * kBurst / kThreads));
      const auto k = static_cast<std::size_t>((front + static_cast<int>(random() % 64)) % kKeys);
      if (spend(*table, keys[k], kLimit, Time{10s}).allowed) ++admitted[k];
    }
  });
  done = true;
  keeper.join();
  for (std::size_t k = 0; k < kKeys; ++k) {
    // Each bucket lost exactly what was acknowledged.
    const Decision now = table->peek(table->hash(Key{keys[k]}), kLimit, 0, Time{10s});
    ASSERT_LE(admitted[k].load(), kBurst) << keys[k];
    ASSERT_EQ(now.remaining, kBurst - admitted[k].load()) << keys[k];
  }
  const Table::Stats stats = table->stats();
  print("growth", stats);
  EXPECT_EQ(stats.evicted, 0u);
  EXPECT_GT(stats.rebuilds, 0u);
}

// The spends must conform when replayed in time order, at the readings that the decisions used. That verifies the
// guarantee for every window at once.
void expect_conforming(std::vector<Time> spends, const Limit& limit, const std::string& key) {
  std::sort(spends.begin(), spends.end());
  Time tat{};
  for (const Time now : spends) {
    const Step step = gcra::spend(limit, tat, 1, now);
    ASSERT_TRUE(step.decision.allowed) << key << " over its limit at " << now.time_since_epoch().count();
    tat = step.tat;
  }
}

TEST(TableStress, NoKeyExceedsItsLimitInAnyWindowWhileSlotsAreReused) {
  constexpr Limit kLimit = Limit::per_second(50).with_burst(5);
  constexpr int kKeys = 4000;
  auto table = make(100'000);
  std::atomic<std::int64_t> clock{Duration(10s).count()};
  // Readings in use. None is older than the horizon's lag, so every decision is made at its own reading.
  std::vector<std::atomic<std::int64_t>> readings(kThreads);
  for (auto& reading : readings) reading = clock.load();
  std::vector<std::vector<std::vector<Time>>> spends(kThreads, std::vector<std::vector<Time>>(kKeys));
  on_threads(kThreads, [&](int t) {
    std::mt19937 random(static_cast<unsigned>(t) + 99);
    for (int i = 0; i < 40'000 * kScale; ++i) {
      const std::int64_t reading = clock.fetch_add(Duration(300us).count() / kScale);
      readings[static_cast<std::size_t>(t)] = reading;
      for (const auto& other : readings) {
        while (other < reading - Duration(900ms).count()) std::this_thread::yield();
      }
      const Time now{Duration{reading}};
      // Few keys at a time, and different ones later, so that the slots of earlier keys are reused.
      const auto epoch = static_cast<unsigned>(now.time_since_epoch() / 500ms);
      const auto k = (epoch * 97 + random() % 40) % kKeys;
      const std::string key = "k" + std::to_string(k);
      if (spend(*table, key, kLimit, now).allowed) spends[static_cast<std::size_t>(t)][k].push_back(now);
      if (random() % 512 == 0) table->maintain(Now{now, Wall{}}, 8);
    }
    readings[static_cast<std::size_t>(t)] = std::numeric_limits<std::int64_t>::max();
  });
  std::size_t total = 0;
  for (std::size_t k = 0; k < kKeys; ++k) {
    std::vector<Time> all;
    for (const auto& mine : spends) all.insert(all.end(), mine[k].begin(), mine[k].end());
    total += all.size();
    expect_conforming(std::move(all), kLimit, "k" + std::to_string(k));
  }
  print("reuse", table->stats());
  EXPECT_LT(table->stats().buckets, kKeys);
  EXPECT_GT(total, 0u);
}

TEST(TableStress, OnlyEvictedBucketsForgetAndEveryEvictionIsCounted) {
  constexpr Count kBurst = 4;
  constexpr Limit kLimit = Limit::per_hour(kBurst);
  constexpr int kKeys = 20'000;
  auto table = make(8000);
  std::vector<std::atomic<Count>> admitted(kKeys);
  on_threads(kThreads, [&](int t) {
    std::mt19937 random(static_cast<unsigned>(t) + 5);
    for (int i = 0; i < 60'000 * kScale; ++i) {
      const auto k = static_cast<std::size_t>(random() % kKeys);
      if (spend(*table, "k" + std::to_string(k), kLimit, Time{10s}).allowed) ++admitted[k];
    }
  });
  Count beyond = 0;
  for (const auto& count : admitted) beyond += std::max<Count>(count.load() - kBurst, 0);
  const Table::Stats stats = table->stats();
  print("eviction", stats);
  EXPECT_GT(beyond, 0);
  // An evicted bucket may admit again at most what it had admitted before: at most one burst per eviction.
  EXPECT_LE(beyond, static_cast<Count>(stats.evicted) * kBurst);
  EXPECT_LE(stats.buckets, 8000u + kThreads);
}

TEST(TableStress, TogetherNeverTakesFromOneBucketOnly) {
  constexpr Limit kShared = Limit::per_hour(3000);
  constexpr Limit kOwn = Limit::per_hour(1000);
  auto table = make(1000);
  const ManualClock clock(Time{10s});
  std::vector<std::atomic<Count>> admitted(kThreads);
  on_threads(kThreads, [&](int t) {
    // Pairs of threads also share a bucket of 1000, and name the buckets in opposite order.
    const std::string own = "own" + std::to_string(t % 2);
    std::array<Charge, 2> charges;
    charges[0].rate = RateCharge{"shared", kShared};
    charges[1].rate = RateCharge{own, kOwn};
    if (t >= 2) std::swap(charges[0], charges[1]);
    for (int i = 0; i < 1500; ++i) {
      if (charge(*table, charges, Mode::spend, Order::together, clock.now(), clock).allowed)
        ++admitted[static_cast<std::size_t>(t)];
    }
  });
  Count total = 0;
  for (const auto& count : admitted) total += count.load();
  const auto left = [&](const char* key, const Limit& limit) {
    return table->peek(table->hash(Key{key}), limit, 0, Time{10s}).remaining;
  };
  EXPECT_EQ(3000 - left("shared", kShared), total);
  EXPECT_EQ(1000 - left("own0", kOwn), admitted[0] + admitted[2]);
  EXPECT_EQ(1000 - left("own1", kOwn), admitted[1] + admitted[3]);
  print("together", table->stats());
}

}  // namespace
}  // namespace weir
