#include "weir/external/breaker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "weir/base/bounds.h"

namespace weir::external::breaker_test {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart = Time{} + 1h;
constexpr int kFailures = bounds::breaker_failures_max;

void fail(KeyBreakers& breakers, std::string_view key, int times, Time now) {
  for (int i = 0; i < times; ++i) {
    ASSERT_TRUE(breakers.permits(key, now)) << key << " " << i;
    breakers.ended(key, CallEnd::failed, now);
  }
}

TEST(KeyBreakers, FiveFailuresOpenItForThatKeyOnly) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures, kStart);
  EXPECT_FALSE(breakers.permits("a", kStart));
  EXPECT_FALSE(breakers.permits("a", kStart + 30s - 1ns));
  EXPECT_TRUE(breakers.permits("b", kStart));
  EXPECT_EQ(breakers.open(kStart), 1u);
}

TEST(KeyBreakers, OnlyFailuresInARowCount) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures - 1, kStart);
  ASSERT_TRUE(breakers.permits("a", kStart));
  breakers.ended("a", CallEnd::succeeded, kStart);
  EXPECT_EQ(breakers.size(), 0u) << "a key that works needs no breaker";
  fail(breakers, "a", kFailures - 1, kStart);
  EXPECT_TRUE(breakers.permits("a", kStart));
  EXPECT_EQ(breakers.open(kStart), 0u);
}

TEST(KeyBreakers, After30SecondsExactlyOneProbeIsMade) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures, kStart);
  const Time later = kStart + 30s;
  EXPECT_TRUE(breakers.permits("a", later));
  EXPECT_FALSE(breakers.permits("a", later));
  EXPECT_FALSE(breakers.permits("a", later + 29s));
  EXPECT_EQ(breakers.open(later), 1u) << "probing";
}

TEST(KeyBreakers, SuccessOfTheProbeCloses) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures, kStart);
  ASSERT_TRUE(breakers.permits("a", kStart + 30s));
  breakers.ended("a", CallEnd::succeeded, kStart + 31s);
  EXPECT_TRUE(breakers.permits("a", kStart + 31s));
  EXPECT_TRUE(breakers.permits("a", kStart + 31s));
  EXPECT_EQ(breakers.open(kStart + 31s), 0u);
  fail(breakers, "a", kFailures - 1, kStart + 31s);
  EXPECT_TRUE(breakers.permits("a", kStart + 31s)) << "counted from the beginning";
}

TEST(KeyBreakers, FailureOfTheProbeOpensItAgain) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures, kStart);
  ASSERT_TRUE(breakers.permits("a", kStart + 30s));
  breakers.ended("a", CallEnd::failed, kStart + 31s);
  EXPECT_FALSE(breakers.permits("a", kStart + 61s - 1ns));
  EXPECT_TRUE(breakers.permits("a", kStart + 61s));
  EXPECT_FALSE(breakers.permits("a", kStart + 61s));
}

TEST(KeyBreakers, AProbeThatWasNotMadeIsMadeByTheNext) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures, kStart);
  ASSERT_TRUE(breakers.permits("a", kStart + 30s));
  breakers.ended("a", CallEnd::not_made, kStart + 30s);
  EXPECT_TRUE(breakers.permits("a", kStart + 30s));
  EXPECT_FALSE(breakers.permits("a", kStart + 30s));
  breakers.ended("b", CallEnd::not_made, kStart + 30s);
  EXPECT_EQ(breakers.size(), 1u) << "counts as nothing";
}

// Several calls may have been permitted before the fifth failure.
TEST(KeyBreakers, LateFailuresKeepItOpen) {
  KeyBreakers breakers;
  for (int i = 0; i < kFailures + 2; ++i) ASSERT_TRUE(breakers.permits("a", kStart));
  for (int i = 0; i < kFailures; ++i) breakers.ended("a", CallEnd::failed, kStart);
  breakers.ended("a", CallEnd::failed, kStart + 10s);
  EXPECT_FALSE(breakers.permits("a", kStart + 39s));
  breakers.ended("a", CallEnd::succeeded, kStart + 39s);
  EXPECT_TRUE(breakers.permits("a", kStart + 39s));
}

TEST(KeyBreakers, IdleOnesDisappear) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures, kStart);
  fail(breakers, "b", 1, kStart + 1s);
  breakers.remove_idle(kStart + 60s - 1ns);
  EXPECT_EQ(breakers.size(), 2u);
  EXPECT_EQ(breakers.open(kStart + 60s), 0u) << "not used for 60 s";
  breakers.remove_idle(kStart + 60s);
  EXPECT_EQ(breakers.size(), 1u);
  EXPECT_TRUE(breakers.permits("c", kStart + 61s));
  EXPECT_EQ(breakers.size(), 0u) << "permits() removes idle ones";
}

TEST(KeyBreakers, BeingAskedCountsAsUse) {
  KeyBreakers breakers;
  fail(breakers, "a", kFailures, kStart);
  EXPECT_FALSE(breakers.permits("a", kStart + 29s));
  breakers.remove_idle(kStart + 61s);
  EXPECT_EQ(breakers.size(), 1u);
}

TEST(KeyBreakers, ThereAreAtMostTenThousand) {
  KeyBreakers breakers;
  for (std::size_t i = 0; i < bounds::breakers_max; ++i) fail(breakers, std::to_string(i), 1, kStart);
  EXPECT_EQ(breakers.size(), bounds::breakers_max);
  fail(breakers, "0", kFailures - 1, kStart);  // now the last used
  fail(breakers, "one more", 1, kStart);
  EXPECT_EQ(breakers.size(), bounds::breakers_max);
  EXPECT_FALSE(breakers.permits("0", kStart));
  EXPECT_EQ(breakers.open(kStart), 1u);
  // The least recently used made room: it starts again.
  fail(breakers, "1", kFailures, kStart);
  EXPECT_FALSE(breakers.permits("1", kStart));
  EXPECT_EQ(breakers.size(), bounds::breakers_max);
}

void end(ServiceBreaker& breaker, CallEnd how, std::uint32_t times, Time now) {
  for (std::uint32_t i = 0; i < times; ++i) breaker.ended(how, now);
}

constexpr std::uint32_t kCalls = bounds::service_breaker_calls_min;

TEST(ServiceBreaker, OpensWhenHalfOfTwentyCallsFailed) {
  ServiceBreaker breaker;
  end(breaker, CallEnd::succeeded, kCalls / 2, kStart);
  end(breaker, CallEnd::failed, kCalls / 2 - 1, kStart);
  EXPECT_FALSE(breaker.is_open()) << "19 calls";
  EXPECT_TRUE(breaker.permits(kStart));
  end(breaker, CallEnd::failed, 1, kStart);
  EXPECT_TRUE(breaker.is_open());
  EXPECT_FALSE(breaker.permits(kStart));
}

TEST(ServiceBreaker, StaysClosedWhileMoreThanHalfSucceed) {
  ServiceBreaker breaker;
  end(breaker, CallEnd::succeeded, 51, kStart);
  end(breaker, CallEnd::failed, 50, kStart);
  EXPECT_FALSE(breaker.is_open());
  end(breaker, CallEnd::failed, 1, kStart);
  EXPECT_TRUE(breaker.is_open());
}

TEST(ServiceBreaker, ForgetsWhatIsOlderThanTenSeconds) {
  ServiceBreaker breaker;
  end(breaker, CallEnd::failed, kCalls - 1, kStart);
  end(breaker, CallEnd::failed, 1, kStart + 10s);
  EXPECT_FALSE(breaker.is_open());
  end(breaker, CallEnd::failed, kCalls - 2, kStart + 12s);
  EXPECT_FALSE(breaker.is_open());
  end(breaker, CallEnd::failed, 1, kStart + 19s);
  EXPECT_TRUE(breaker.is_open());
}

TEST(ServiceBreaker, AnOldSuccessDoesNotKeepItClosed) {
  ServiceBreaker breaker;
  end(breaker, CallEnd::succeeded, 1000, kStart);
  end(breaker, CallEnd::failed, kCalls, kStart + 5s);
  EXPECT_FALSE(breaker.is_open());
  end(breaker, CallEnd::failed, 1, kStart + 11s);
  EXPECT_TRUE(breaker.is_open());
}

TEST(ServiceBreaker, PermitsOneProbeASecondUntilOneSucceeds) {
  ServiceBreaker breaker;
  end(breaker, CallEnd::failed, kCalls, kStart);
  EXPECT_FALSE(breaker.permits(kStart + 1s - 1ns));
  EXPECT_TRUE(breaker.permits(kStart + 1s));
  EXPECT_FALSE(breaker.permits(kStart + 1s));
  breaker.ended(CallEnd::failed, kStart + 1500ms);
  EXPECT_FALSE(breaker.permits(kStart + 2s - 1ns));
  EXPECT_TRUE(breaker.permits(kStart + 2s));
  breaker.ended(CallEnd::succeeded, kStart + 2s);
  EXPECT_FALSE(breaker.is_open());
  EXPECT_TRUE(breaker.permits(kStart + 2s));
  EXPECT_TRUE(breaker.permits(kStart + 2s));
}

TEST(ServiceBreaker, CountsFromTheBeginningAfterItClosed) {
  ServiceBreaker breaker;
  end(breaker, CallEnd::failed, kCalls, kStart);
  ASSERT_TRUE(breaker.permits(kStart + 1s));
  breaker.ended(CallEnd::succeeded, kStart + 1s);
  end(breaker, CallEnd::failed, kCalls - 2, kStart + 1s);
  EXPECT_FALSE(breaker.is_open());
  end(breaker, CallEnd::failed, 1, kStart + 1s);
  EXPECT_TRUE(breaker.is_open());
}

TEST(ServiceBreaker, AProbeThatWasNotMadeIsMadeByTheNext) {
  ServiceBreaker breaker;
  end(breaker, CallEnd::failed, kCalls, kStart);
  ASSERT_TRUE(breaker.permits(kStart + 1s));
  breaker.ended(CallEnd::not_made, kStart + 1s);
  EXPECT_TRUE(breaker.permits(kStart + 1s));
  EXPECT_FALSE(breaker.permits(kStart + 1s));
}

}  // namespace
}  // namespace weir::external::breaker_test
