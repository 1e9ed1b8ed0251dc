// Threads on one Limiter: whatever they do to each other, exactly what may pass passes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "weir/limiter.h"
#include "weir/overrides.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 8;
constexpr int kRounds = 20'000;

void on_all_threads(const std::function<void(int)>& run) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(run, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(LimiterStress, AdmitsExactlyTheBurst) {
  ManualClock clock{Time{1s}};
  Limiter limiter{Limit::per_hour(kThreads * kRounds / 2), {.clock = &clock}};
  std::atomic<int> allowed{0};
  on_all_threads([&](int) {
    int mine = 0;
    for (int i = 0; i < kRounds; ++i) mine += limiter.spend("hot").allowed ? 1 : 0;
    allowed += mine;
  });
  EXPECT_EQ(allowed, kThreads * kRounds / 2);
}

TEST(LimiterStress, AdmitsExactlyTheBurstOfEachOfManyKeysSingleAndBatched) {
  ManualClock clock{Time{1s}};
  constexpr int kKeys = 2'000;
  constexpr int kBurst = 5;
  Limiter limiter{Limit::per_hour(kBurst), {.clock = &clock}};
  std::atomic<int> allowed{0};
  on_all_threads([&](int t) {
    std::vector<std::string> texts;
    for (int i = 0; i < kKeys; ++i) texts.push_back(std::to_string((i + t * 200) % kKeys));
    const std::vector<std::string_view> keys(texts.begin(), texts.end());
    std::vector<Decision> decisions(keys.size());
    int mine = 0;
    for (int round = 0; round < 2; ++round) {
      limiter.spend_batch(keys, decisions);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        mine += decisions[i].allowed ? 1 : 0;
        mine += limiter.spend(keys[i]).allowed ? 1 : 0;
      }
    }
    allowed += mine;
  });
  EXPECT_EQ(allowed, kKeys * kBurst);
}

TEST(LimiterStress, ChargesTogetherNeverMoreThanTheTighterLimit) {
  ManualClock clock{Time{1s}};
  Buckets buckets({.clock = &clock});
  constexpr int kTight = 1'000;
  Limiter tight{buckets, "tight", Limit::per_hour(kTight)};
  Limiter wide{buckets, "wide", Limit::per_hour(3'000)};
  std::atomic<int> allowed{0};
  on_all_threads([&](int t) {
    int mine = 0;
    for (int i = 0; i < kRounds / 20; ++i) {
      const Buckets::Verdict verdict = t % 2 == 0 ? buckets.spend_together({{tight, "a"}, {wide, "a"}})
                                                  : buckets.spend_together({{wide, "a"}, {tight, "a"}});
      mine += verdict.allowed ? 1 : 0;
    }
    allowed += mine;
  });
  EXPECT_EQ(allowed, kTight);
  EXPECT_EQ(wide.peek("a").remaining, 3'000 - kTight);
}

TEST(LimiterStress, ReadsOverridesWholeWhileTheyChange) {
  Overrides overrides;
  // Count, burst and period of a limit agree, so that a torn one shows.
  const auto numbered = [](Count n) { return *Limit::make(n, Duration{n * 1'000}, n); };
  ASSERT_TRUE(overrides.set(7, numbered(1), Time{}));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (Count n = 1; n <= 30'000; ++n) {
      const std::uint64_t other = 8 + static_cast<std::uint64_t>(n % 300);
      ASSERT_TRUE(overrides.set(7, numbered(n), Time{}));
      ASSERT_TRUE(overrides.set(other, numbered(n), Time{}));
      if (n % 3 == 0) overrides.remove(other, Time{});
    }
    stop = true;
  });
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      Count last = 1;
      while (!stop) {
        const std::optional<Limit> limit = overrides.find(7);
        ASSERT_TRUE(limit);
        ASSERT_EQ(*limit, numbered(limit->burst()));
        ASSERT_GE(limit->burst(), last);
        last = limit->burst();
        ASSERT_FALSE(overrides.find(1'000'000));
      }
    });
  }
  writer.join();
  for (std::thread& reader : readers) reader.join();
}

TEST(LimiterStress, SpendsWhileOverridesComeAndGo) {
  ManualClock clock{Time{1s}};
  constexpr Limit kNarrow = Limit::per_hour(100);
  constexpr Limit kWide = Limit::per_hour(1'000);
  Limiter limiter{kNarrow, {.clock = &clock}};
  std::atomic<int> allowed{0};
  on_all_threads([&](int t) {
    for (int i = 0; i < kRounds / 10; ++i) {
      if (t == 0) {
        ASSERT_TRUE(limiter.set_override("a", kWide));
        limiter.remove_override("a");
      } else {
        const Decision decision = limiter.spend("a");
        ASSERT_TRUE(decision.burst == kNarrow.burst() || decision.burst == kWide.burst());
        allowed += decision.allowed ? 1 : 0;
      }
    }
  });
  EXPECT_LE(allowed, kWide.burst());
}

}  // namespace
}  // namespace weir
