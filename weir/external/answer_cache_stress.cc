// Threads find, put and forget answers at the same time: each finds only answers of its key, and the bound holds.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "weir/external/answer_cache.h"

namespace weir::external::answer_cache_stress {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 4;
constexpr int kTurns = 50'000;
constexpr std::size_t kMost = 1024;
constexpr std::size_t kKeys = 2 * kMost;  // more than fit

KeptAnswer answer_of(std::size_t key, Time now) {
  KeptAnswer answer;
  answer.numbers = *Limit::make(static_cast<Count>(key) + 1, 1s, 10);
  answer.service = "s";
  answer.answered = now;
  answer.fresh_until = now + 60s;
  answer.stale_until = now + 360s;
  return answer;
}

TEST(AnswerCacheStress, EveryKeyHasItsOwnAnswer) {
  AnswerCache cache({1, 2}, kMost);
  std::atomic<int> found{0};
  std::atomic<int> forgotten{0};
  const auto run = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::size_t key = random() % kKeys;
      const std::string name = std::to_string(key);
      const Time now = Time{} + std::chrono::milliseconds{turn};
      switch (random() % 8) {
        case 0:
          EXPECT_EQ(cache.put("limit", name, answer_of(key, now), now)->numbers->count(), static_cast<Count>(key) + 1);
          break;
        case 1:
          if (cache.forget("limit", name)) ++forgotten;
          break;
        default:
          if (const auto known = cache.find("limit", name, "s", now); known.answer != nullptr) {
            ++found;
            EXPECT_EQ(known.answer->numbers->count(), static_cast<Count>(key) + 1);
          }
      }
      if (turn % 1000 == 0) {
        EXPECT_LE(cache.size(), kMost);
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
  EXPECT_GT(forgotten, 0);
  EXPECT_LE(cache.size(), kMost);
}

}  // namespace
}  // namespace weir::external::answer_cache_stress
