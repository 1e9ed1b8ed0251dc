// Loops cache denials while another refunds the bucket. After a refund, find() must not return a denial that was in
// flight before it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "weir/store/redis/denial_cache.h"

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

constexpr Time kNow{10s};

TEST(DenialCacheStress, NoDenialOutlivesARefundThatItDidNotSee) {
  DenialCache cache(HashKey{1, 2});
  std::atomic<bool> over{false};
  std::vector<std::thread> loops;
  for (int i = 0; i < 2; ++i) {
    loops.emplace_back([&] {
      while (!over.load()) {
        const std::uint64_t serial = cache.serial();
        // `remaining` holds the serial at which the question was sent.
        const std::array<Decision, 1> denied = {Decision{false, 5, static_cast<Count>(serial), 1h, 1h}};
        cache.remember("a", "q", denied, 1h, kNow, kNow, serial);
      }
    });
  }
  DenialCache::Denial denial;
  std::uint64_t received = 0;
  for (int round = 0; round < 20'000 || received < 100; ++round) {
    cache.forget("a");
    const auto forgotten = static_cast<Count>(cache.serial());
    if (cache.find("a", "q", kNow, denial) != DenialCache::Found::denied) continue;
    ++received;
    ASSERT_GE(denial.decisions.at(0).remaining, forgotten);
  }
  over.store(true);
  for (std::thread& loop : loops) loop.join();
  EXPECT_LE(cache.size(), 1u);
}

}  // namespace
}  // namespace weir::redis
