// Limits that change while a bucket is in use. Between two changes the guarantee holds exactly, so k changes forgive at
// most k bursts. Until the next change, waiting for the retry_after of any decision is enough.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "weir/algorithm/gcra.h"

namespace weir::gcra_changes_test {
namespace {

using namespace std::chrono_literals;

__extension__ using Wide = __int128;

constexpr Time at(Duration since) {
  return Time{since};
}

constexpr Limit kTwenty = Limit::per_second(20);

// A TAT of another limit that is found late counts as a bucket that was empty when the limit changed.
static_assert(gcra::settle(kTwenty, at(24h), at(10s), at(10s)) == at(11s));
static_assert(gcra::settle(kTwenty, at(24h), at(4s), at(10s)) == at(5s));
static_assert(gcra::settle(kTwenty, at(24h), Time::max(), at(10s)) == at(11s), "changed just now");
// Every other TAT is used as it is.
static_assert(gcra::settle(kTwenty, at(11s), at(4s), at(10s)) == at(11s));
static_assert(gcra::settle(kTwenty, at(11s + 1ns), at(4s), at(10s)) == at(5s));
static_assert(gcra::settle(kTwenty, Time{}, at(4s), at(10s)) == Time{});

TEST(GcraChanges, ThreeAnHourEmptiedAndRelaxedToThreeASecondPassesWhenThePeekSaidSo) {
  constexpr Limit hourly = Limit::per_hour(3);
  constexpr Limit fast = Limit::per_second(3);
  const Time changed = at(100s);
  const Time tat = gcra::spend(hourly, Time{}, 3, at(99s)).tat;
  const Time counted = gcra::settle(fast, tat, changed, changed + 100ms);
  const Decision peeked = gcra::peek(fast, counted, 1, changed + 100ms);
  EXPECT_EQ(peeked.retry_after, fast.interval() - 100ms);
  EXPECT_TRUE(gcra::spend(fast, counted, 1, changed + 100ms + peeked.retry_after).decision.allowed);
  // No request for six seconds.
  EXPECT_TRUE(gcra::spend(fast, gcra::settle(fast, tat, changed, changed + 6s), 3, changed + 6s).decision.allowed);
}

enum class Rule { settle, cap_every_tat };

struct Spent {
  Time at;
  Count tokens;
};

// Both sides are multiplied by the interval, which avoids an inexact division.
bool keeps_promise(const Limit& limit, const std::vector<Spent>& events) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    Wide sum = 0;
    for (std::size_t j = i; j < events.size(); ++j) {
      sum += events[j].tokens;
      const Duration window = events[j].at - events[i].at;
      if (sum * limit.interval().count() > Wide{limit.window().count()} + window.count()) return false;
    }
  }
  return true;
}

// Runs one bucket under a limit that changes at random. Returns false if a span broke the guarantee or a wait was too
// short.
class History {
 public:
  History(std::uint64_t seed, Rule rule) : random_(seed), rule_(rule) {}

  bool keeps_promises() {
    const std::int64_t changes = pick(0, 5);
    for (std::int64_t span = 0; span <= changes; ++span) {
      limit_ = Limit::make(1, Duration{pick(1, 40)}, pick(1, 6)).value();
      since_ = now_;
      events_.clear();
      for (int step = 0; step < 25; ++step) {
        now_ += Duration{pick(0, 2) == 0 ? pick(0, 3 * limit_.interval().count()) : pick(0, 2)};
        if (!act()) return false;
      }
      if (!keeps_promise(limit_, events_)) return false;
      now_ += Duration{pick(0, 3) == 0 ? pick(0, 500) : 0};
    }
    return true;
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  Time counted(Time now) const {
    if (rule_ == Rule::cap_every_tat) return std::min(tat_, since_ + limit_.window());
    return gcra::settle(limit_, tat_, since_, now);
  }

  bool act() {
    const Count cost = pick(1, limit_.burst());
    const std::int64_t action = pick(0, 9);
    tat_ = counted(now_);
    if (action == 0) return waits_enough(gcra::peek(limit_, tat_, cost, now_), cost);
    if (action == 1) {
      tat_ = gcra::refund(limit_, tat_, cost, now_).tat;
      events_.push_back({now_, -cost});
      return true;
    }
    const Step step = gcra::spend(limit_, tat_, cost, now_);
    tat_ = step.tat;
    if (step.decision.allowed) events_.push_back({now_, cost});
    return waits_enough(step.decision, cost);
  }

  // Exactly then the cost is allowed, whatever TAT settle() returns by then.
  bool waits_enough(const Decision& denied, Count cost) const {
    if (denied.allowed) return true;
    const Time then = now_ + denied.retry_after;
    return gcra::spend(limit_, counted(then), cost, then).decision.allowed &&
           !gcra::spend(limit_, counted(then - Duration{1}), cost, then - Duration{1}).decision.allowed;
  }

  std::mt19937_64 random_;
  Rule rule_;
  Limit limit_ = Limit::per_second(1);
  Time since_{};
  Time now_ = at(1us);
  Time tat_{};
  std::vector<Spent> events_;
};

TEST(GcraChanges, EveryChangeOfARandomHistoryForgivesAtMostOneBurst) {
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    ASSERT_TRUE(History(seed, Rule::settle).keeps_promises()) << "seed " << seed;
  }
}

TEST(GcraChanges, TheSearchWouldCatchARuleThatCapsEveryTat) {
  int broken = 0;
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    if (!History(seed, Rule::cap_every_tat).keeps_promises()) ++broken;
  }
  EXPECT_GT(broken, 500);
}

}  // namespace
}  // namespace weir::gcra_changes_test
