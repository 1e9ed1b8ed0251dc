#include "weir/redis/flight_window.h"

#include <gtest/gtest.h>

#include <deque>

namespace weir::redis::flight_window_test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTimeout = 250ms;

// Simulates a Redis that answers one command after another and a loop that sends as much as the window allows.
class FloodedRedis {
 public:
  explicit FloodedRedis(Duration per_question) : per_question_(per_question) {}

  void slow_down(int times) { per_question_ *= times; }

  // Returns the longest reply time during the run.
  Duration run(Duration duration) {
    Duration longest{};
    for (const Time end = now_ + duration; now_ < end;) {
      while (window_.admits(1, 0, now_)) {
        window_.sent(1, now_);
        sent_.push_back(now_);
      }
      now_ = std::max(now_, free_at_) + per_question_;
      free_at_ = now_;
      longest = std::max(longest, now_ - sent_.front());
      sent_.pop_front();
      window_.answered(1, now_);
      ++answered_;
    }
    return longest;
  }

  int answered() const { return answered_; }
  std::size_t window() const { return window_.size(now_); }

 private:
  Duration per_question_;
  FlightWindow window_{kTimeout};
  std::deque<Time> sent_;
  Time now_{1s};
  Time free_at_{};
  int answered_ = 0;
};

TEST(FlightWindow, KeepsRepliesWithinASixteenthOfTheTimeout) {
  FloodedRedis redis(18us);
  redis.run(1s);
  const Duration longest = redis.run(5s);
  EXPECT_LE(longest, kTimeout / 16 + kTimeout / 64);
  EXPECT_GE(longest, kTimeout / 32) << "the window is smaller than it needs to be";
}

TEST(FlightWindow, NeverSendsMoreThanASlowedDownRedisAnswersInTime) {
  FloodedRedis redis(18us);
  redis.run(1s);
  redis.slow_down(10);
  EXPECT_LE(redis.run(500ms), kTimeout * 3 / 4) << "commands in flight take ten times as long";
  EXPECT_LE(redis.run(2s), kTimeout / 8);
  const int before = redis.answered();
  redis.run(1s);
  EXPECT_GE(redis.answered() - before, 5'500) << "at 180 us each it is never idle";
}

TEST(FlightWindow, ShrinksToTheMinimumForARedisThatIsSlowFromTheStart) {
  FloodedRedis redis(2ms);
  redis.run(300ms);
  EXPECT_LE(redis.run(2s), 2ms * static_cast<int>(bounds::flight_window_min + 1));
  EXPECT_EQ(redis.window(), bounds::flight_window_min);
}

TEST(FlightWindow, RaisesTheTargetForADistantRedisUpToAQuarterOfTheTimeout) {
  FlightWindow window(kTimeout);
  EXPECT_EQ(window.target(), kTimeout / 16);
  window.sent(1, Time{1s});
  window.answered(1, Time{1s} + 20ms);
  EXPECT_EQ(window.target(), 40ms);
  FlightWindow distant(kTimeout);
  distant.sent(1, Time{1s});
  distant.answered(1, Time{1s} + 100ms);
  EXPECT_EQ(distant.target(), kTimeout / 4);
}

TEST(FlightWindow, AdmitsWhatFitsAndAlwaysOneCommand) {
  FlightWindow window(kTimeout);
  window.sent(bounds::flight_window_first - 1, Time{1s});
  EXPECT_TRUE(window.admits(1, 0, Time{1s}));
  EXPECT_FALSE(window.admits(2, 0, Time{1s}));
  EXPECT_FALSE(window.admits(1, 1, Time{1s}));
  window.answered(bounds::flight_window_first - 1, Time{1s} + 1ms);
  EXPECT_TRUE(window.admits(10 * bounds::flight_window_max, 0, Time{1s}));
  EXPECT_FALSE(window.admits(1, bounds::flight_window_max, Time{1s}));
}

TEST(FlightWindow, GrowsOnlyWhileItIsUsedAndOnlyToItsLimit) {
  FlightWindow window(kTimeout);
  Time now{1s};
  const auto round = [&](std::size_t buckets) {
    window.sent(buckets, now);
    window.answered(buckets, now += 1ms);
  };
  for (int i = 0; i < 100; ++i) round(1);
  EXPECT_EQ(window.size(now), bounds::flight_window_first);
  for (int i = 0; i < 100; ++i) round(window.size(now));
  EXPECT_EQ(window.size(now), bounds::flight_window_max);
}

TEST(FlightWindow, NeverShrinksBelowItsMinimum) {
  FlightWindow window(kTimeout);
  Time now{1s};
  for (int i = 0; i < 100; ++i) {
    window.sent(1, now);
    window.answered(1, now += 200ms);
  }
  EXPECT_EQ(window.size(now), bounds::flight_window_min);
}

TEST(FlightWindow, IgnoresLostConnectionsWhenItMeasuresSpeed) {
  FlightWindow window(kTimeout);
  window.sent(10, Time{1s});
  window.lost(10);
  EXPECT_EQ(window.in_flight(), 0u);
  EXPECT_EQ(window.size(Time{9s}), bounds::flight_window_first);
}

}  // namespace
}  // namespace weir::redis::flight_window_test
