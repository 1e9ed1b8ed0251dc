#include "weir/base/clock.h"

#include <gtest/gtest.h>

#include "weir/base/time.h"

namespace weir::clock_test {
namespace {

using namespace std::chrono_literals;

static_assert(ceil_seconds(0ns) == 0s);
static_assert(ceil_seconds(1ns) == 1s);
static_assert(ceil_seconds(999'999'999ns) == 1s);
static_assert(ceil_seconds(1s) == 1s);
static_assert(ceil_seconds(1s + 1ns) == 2s);
static_assert(ceil_seconds(Duration::max()) == 9'223'372'037s, "the longest duration rounds without overflow");

TEST(BootClock, NeverGoesBack) {
  const BootClock clock;
  Time last = clock.time();
  for (int i = 0; i < 100'000; ++i) {
    const Time now = clock.time();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(BootClock, AdvancesByItself) {
  const BootClock clock;
  const Time start = clock.time();
  // A clock that does not advance would hang here; the test's time limit is the assertion.
  while (clock.time() - start < 50us) {
  }
  EXPECT_GE(clock.now().time - start, 50us);
}

TEST(BootClock, AddsItsOffset) {
  const Time before = BootClock{}.time();
  const Time ahead = BootClock{1000h}.time();
  const Time after = BootClock{}.time();
  EXPECT_GE(ahead, before + 1000h);
  EXPECT_LE(ahead, after + 1000h);
}

TEST(BootClock, ReturnsTheSystemWallTime) {
  const auto before = std::chrono::system_clock::now();
  const Wall wall = BootClock{}.now().wall;
  EXPECT_GE(wall, before - 1s);
  EXPECT_LE(wall, std::chrono::system_clock::now() + 1s);
}

TEST(ManualClock, AdvancesOnlyWhenTold) {
  ManualClock clock{Time{5s}, Wall{100s}};
  EXPECT_EQ(clock.now().time, Time{5s});
  EXPECT_EQ(clock.now().time, Time{5s});
  clock.advance(2s);
  EXPECT_EQ(clock.now().time, Time{7s});
  EXPECT_EQ(clock.now().wall, Wall{102s});
  clock.set(Time{1s}, Wall{3s});
  EXPECT_EQ(clock.now().time, Time{1s});
  EXPECT_EQ(clock.now().wall, Wall{3s});
}

}  // namespace
}  // namespace weir::clock_test
