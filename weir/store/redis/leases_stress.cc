// Loops spend from the same leases at once: every granted token is given to one request or returned, never both.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "weir/store/redis/leases.h"

namespace weir::redis {
namespace {

using namespace std::chrono_literals;

TEST(LeasesStress, EveryTokenIsSpentOrReturnedOnce) {
  constexpr Time kNow{10s};
  const Leases::Terms terms{Limit::per_second(1000).less(256), Lease{64, 4}};
  Leases leases({.holder = "a", .key = {1, 2}, .buckets_max = 16});
  std::atomic<Count> granted{0}, spent{0}, returned{0};
  std::vector<std::thread> loops;
  for (int i = 0; i < 4; ++i) {
    loops.emplace_back([&, i] {
      for (int round = 0; round < 20'000; ++round) {
        const Count cost = 1 + (round + i) % 3;
        const Leases::Bucket bucket = 1 + static_cast<Leases::Bucket>(round % 2);
        const Leases::Answer answer = leases.spend(bucket, terms, cost, kNow);
        if (answer.way == Leases::Way::leased) spent += cost;
        returned += answer.unspent.tokens;
        if (answer.want == 0) continue;
        // Count it before any loop can spend it.
        granted += answer.want;
        if (!leases.granted(bucket, answer.serial, answer.want, {}, kNow, kNow)) returned += answer.want;
        if (round % 7 == 0) returned += leases.end(bucket, answer.serial);
      }
    });
  }
  for (std::thread& loop : loops) loop.join();
  // Spend what is left.
  for (const Leases::Bucket bucket : {Leases::Bucket{1}, Leases::Bucket{2}}) {
    for (;;) {
      const Leases::Answer answer = leases.spend(bucket, terms, 1, kNow);
      if (answer.way != Leases::Way::leased) break;
      ++spent;
    }
  }
  EXPECT_EQ(spent + returned, granted);
  EXPECT_GT(spent, 10'000);
}

}  // namespace
}  // namespace weir::redis
