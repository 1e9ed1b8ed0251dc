#include "weir/redis/availability.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::redis::availability_test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTimeout = 250ms;
constexpr Time kStart = Time{} + 1h;

// Sends probes from `from` on, each answered after `latency`, until Redis is up or `until` is reached. Returns that
// time.
Time probe(Availability& redis, Time from, Time until, Duration latency) {
  Time now = from;
  while (!redis.is_up() && now < until) {
    now = std::max(now, redis.probe_at());
    redis.probe_sent(now);
    if (latency <= redis.probe_timeout()) {
      redis.probe_answered(now + latency);
      now += latency;
    } else {
      redis.probe_failed();
    }
  }
  return now;
}

TEST(Availability, IsUpAsSoonAsTheFirstConnectionIsReady) {
  Availability redis(kTimeout);
  EXPECT_FALSE(redis.is_up());
  EXPECT_TRUE(redis.is_starting());
  EXPECT_FALSE(redis.failed(kStart)) << "it was not up";
  EXPECT_TRUE(redis.connected());
  EXPECT_TRUE(redis.is_up());
  EXPECT_EQ(redis.probe_at(), Time::max());
}

TEST(Availability, RecoversAfterThreeQuickProbesOverASecond) {
  Availability redis(kTimeout);
  redis.connected();
  EXPECT_TRUE(redis.failed(kStart + 1s));
  EXPECT_FALSE(redis.failed(kStart + 1s));
  EXPECT_FALSE(redis.connected()) << "a new connection alone is not enough";
  EXPECT_LE(redis.probe_at(), kStart + 1s);
  int probes = 0;
  Time now = kStart + 1s;
  for (; !redis.is_up(); ++probes) {
    now = std::max(now, redis.probe_at());
    redis.probe_sent(now);
    now += kTimeout / 2;
    redis.probe_answered(now);
  }
  EXPECT_EQ(probes, kProbesInARow);
  EXPECT_GE(now, kStart + 2s);
  EXPECT_LE(now, kStart + 3s);
}

TEST(Availability, ALateOrFailedProbeRestartsTheCount) {
  Availability redis(kTimeout);
  redis.connected();
  redis.failed(kStart);
  Time now = kStart;
  for (int i = 0; i < 100; ++i) {
    now = std::max(now, redis.probe_at());
    redis.probe_sent(now);
    if (i % 3 == 2) {
      redis.probe_failed();
    } else if (i % 3 == 1 && i > 50) {
      redis.probe_answered(now + kTimeout / 2 + 1ns);
    } else {
      redis.probe_answered(now + 1ms);
    }
    EXPECT_FALSE(redis.is_up());
  }
}

// Issue 14, row 11: 30 s of replies that take 400 ms with a timeout of 250 ms.
TEST(Availability, StaysDownWithoutFlappingWhileRedisIsSlowerThanTheTimeout) {
  Availability redis(kTimeout);
  redis.connected();
  ASSERT_TRUE(redis.failed(kStart + kTimeout));
  EXPECT_GE(probe(redis, kStart + kTimeout, kStart + 30s, 400ms), kStart + 30s);
  EXPECT_FALSE(redis.is_up());
  const Time back = probe(redis, kStart + 31s, kStart + 60s, 1ms);
  EXPECT_TRUE(redis.is_up());
  EXPECT_LE(back, kStart + 33s);
}

TEST(Availability, AnotherFailureWithinAMinuteDoublesTheRecoveryTimeUpTo16Seconds) {
  Availability redis(kTimeout);
  redis.connected();
  Time now = kStart;
  for (const Duration span : {1s, 2s, 4s, 8s, 16s, 16s}) {
    ASSERT_TRUE(redis.failed(now));
    const Time up = probe(redis, now, now + 1h, 1ms);
    EXPECT_GE(up - now, span);
    EXPECT_LE(up - now, span + 1s);
    now = up + kAgainWithin - 1ns;
  }
  now += 1ns;
  ASSERT_TRUE(redis.failed(now));
  EXPECT_LE(probe(redis, now, now + 1h, 1ms) - now, 2s) << "a minute without a failure resets it";
}

TEST(Availability, OtherRepliesTakeItDownOnlyIfNoDecisionArrivesForASecond) {
  Availability redis(kTimeout);
  redis.connected();
  Time now = kStart;
  for (int i = 0; i < 1000; ++i, now += 10ms) {
    ASSERT_FALSE(redis.odd(now));
    if (i % 50 == 0) redis.decided();
  }
  redis.decided();
  ASSERT_FALSE(redis.odd(now));
  EXPECT_FALSE(redis.odd(now + kOddMax - 1ns));
  EXPECT_TRUE(redis.odd(now + kOddMax));
  EXPECT_FALSE(redis.is_up());
}

TEST(Availability, AnsweredProbeShowsThatOneBrokenLimitIsNotAnOutage) {
  Availability redis(kTimeout);
  redis.connected();
  for (Time now = kStart; now < kStart + 60s; now += 10ms) {
    ASSERT_FALSE(redis.odd(now));
    if (redis.probe_at() > now) continue;
    redis.probe_sent(now);
    redis.probe_answered(now + 1ms);
  }
  EXPECT_TRUE(redis.is_up());
  redis.decided();
  EXPECT_EQ(redis.probe_at(), Time::max()) << "decisions arrive again";
}

}  // namespace
}  // namespace weir::redis::availability_test
