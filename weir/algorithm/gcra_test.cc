#include "weir/algorithm/gcra.h"

#include <gtest/gtest.h>

namespace weir::gcra_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwenty = Limit::per_second(20);
constexpr Time at(Duration since) {
  return Time{since};
}

// The worked example of the model: burst 20, interval 50 ms, window 1 s.
constexpr Step kFirst = gcra::spend(kTwenty, Time{}, 1, at(10s));
static_assert(kFirst == Step{{true, 20, 19, 0ns, 50ms}, at(10s + 50ms)});
constexpr Step kSecond = gcra::spend(kTwenty, kFirst.tat, 1, at(10s + 5ms));
static_assert(kSecond == Step{{true, 20, 18, 0ns, 95ms}, at(10s + 100ms)});

// A cost that fits exactly is allowed. One nanosecond less room denies it, with the exact wait.
static_assert(gcra::spend(kTwenty, at(11s), 1, at(10s + 50ms)).decision.allowed);
static_assert(gcra::spend(kTwenty, at(11s), 1, at(10s + 50ms - 1ns)).decision ==
              Decision{false, 20, 0, 1ns, 950ms + 1ns});

// A denial changes nothing.
static_assert(gcra::spend(kTwenty, at(11s), 1, at(10s)).tat == at(11s));

// A cost above the burst is never allowed and returns kNever. The largest possible cost does not overflow.
static_assert(gcra::spend(kTwenty, Time{}, 21, at(1s)).decision == Decision{false, 20, 20, kNever, 0ns});
static_assert(gcra::spend(kTwenty, Time{}, std::numeric_limits<Count>::max(), at(1s)).decision.retry_after == kNever);
static_assert(gcra::spend(kTwenty, Time{}, 20, at(1s)).decision == Decision{true, 20, 0, 0ns, 1s});

// A cost of 0 takes nothing.
static_assert(gcra::spend(kTwenty, at(11s), 0, at(10s)) == Step{{true, 20, 0, 0ns, 1s}, at(11s)});

// At worst the bucket is empty under its current limit: if 1000 per day becomes 20 per second, an empty bucket is full
// in a second.
static_assert(gcra::spend(kTwenty, at(24h), 1, at(10s)).decision == Decision{false, 20, 0, 50ms, 1s});

static_assert(gcra::peek(kTwenty, at(10s + 50ms), 19, at(10s)) == Decision{true, 20, 19, 0ns, 50ms});
static_assert(gcra::peek(kTwenty, at(10s + 50ms), 20, at(10s)) == Decision{false, 20, 19, 50ms, 50ms});

static_assert(gcra::refund(kTwenty, at(10s + 100ms), 1, at(10s)) == Step{{true, 20, 19, 0ns, 50ms}, at(10s + 50ms)});
static_assert(gcra::refund(kTwenty, at(10s + 100ms), 5, at(10s)).tat == at(10s), "never beyond full");
static_assert(gcra::refund(kTwenty, at(11s), std::numeric_limits<Count>::max(), at(10s)).decision.remaining == 20);

static_assert(gcra::undo(at(11s), 50ms, at(10s), at(10s)) == at(11s - 50ms));
static_assert(gcra::undo(at(11s), 50ms, at(10s), at(10s + 20ms)) == at(11s - 30ms),
              "the refill gave 20 ms back already");
static_assert(gcra::undo(at(11s), 50ms, at(10s), at(12s)) == at(11s));

TEST(Gcra, WorkedExampleHoldsToTheNanosecond) {
  Time tat{};
  EXPECT_EQ(gcra::spend(kTwenty, tat, 1, at(0s)).decision, (Decision{true, 20, 19, 0ns, 50ms}));
  tat = gcra::spend(kTwenty, tat, 1, at(0s)).tat;
  for (int i = 0; i < 19; ++i) {
    const Step step = gcra::spend(kTwenty, tat, 1, at(5ms + i * 44ms / 18));
    EXPECT_TRUE(step.decision.allowed) << i;
    tat = step.tat;
  }
  EXPECT_EQ(gcra::spend(kTwenty, tat, 1, at(49ms)).decision, (Decision{false, 20, 0, 1ms, 951ms}));
  for (int i = 1; i < 1000; ++i) {
    const Step step = gcra::spend(kTwenty, tat, 1, at(i * 50ms));
    EXPECT_TRUE(step.decision.allowed) << i;
    tat = step.tat;
    EXPECT_FALSE(gcra::spend(kTwenty, tat, 1, at(i * 50ms)).decision.allowed);
  }
}

}  // namespace
}  // namespace weir::gcra_test
