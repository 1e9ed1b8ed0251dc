// Properties of every history, not just of hand-picked ones. The guarantee: in any window of length w, tokens spent
// minus tokens refunded <= burst + w / interval.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "weir/algorithm/gcra.h"

namespace weir::gcra_properties_test {
namespace {

__extension__ using Wide = __int128;

constexpr Time at(std::int64_t ns) {
  return Time{Duration{ns}};
}

// Tokens taken (or, if negative, returned) at a reading of the clock.
struct Event {
  Time at;
  Count tokens;
};

// Both sides are multiplied by the interval, which avoids an inexact division.
bool within(const Limit& limit, Count tokens, Duration window) {
  return Wide{tokens} * limit.interval().count() <= Wide{limit.window().count()} + window.count();
}

// Checks every window that starts and ends at an event; longer windows contain no more tokens.
bool keeps_promise_by_reading(const Limit& limit, std::vector<Event> events) {
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i > 0 && events[i].at == events[i - 1].at) continue;
    Count sum = 0;
    for (std::size_t j = i; j < events.size(); ++j) {
      sum += events[j].tokens;
      const bool last_of_reading = j + 1 == events.size() || events[j + 1].at != events[j].at;
      if (last_of_reading && !within(limit, sum, events[j].at - events[i].at)) return false;
    }
  }
  return true;
}

// Checks every run of consecutive steps. Its duration is the spread of its readings, in any order.
bool keeps_promise_by_step(const Limit& limit, const std::vector<Event>& events) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    Count sum = 0;
    Time low = events[i].at, high = events[i].at;
    for (std::size_t j = i; j < events.size(); ++j) {
      sum += events[j].tokens;
      low = std::min(low, events[j].at);
      high = std::max(high, events[j].at);
      if (!within(limit, sum, high - low)) return false;
    }
  }
  return true;
}

Limit any_limit() {
  const Count count = *rc::gen::inRange<Count>(1, 20);
  const Duration period{*rc::gen::inRange<std::int64_t>(20, 2'000)};
  return Limit::make(count, period, *rc::gen::inRange<Count>(1, 20)).value();
}

// Up to twice the interval, often zero, and negative only if requested.
Duration any_step(const Limit& limit, bool backwards) {
  if (*rc::gen::inRange(0, 3) == 0) return Duration::zero();
  const auto interval = limit.interval().count();
  return Duration{*rc::gen::inRange<std::int64_t>(backwards ? -interval : 0, 2 * interval + 1)};
}

Count any_cost(const Limit& limit) {
  return *rc::gen::weightedOneOf<Count>(
      {{3, rc::gen::just<Count>(1)}, {2, rc::gen::inRange<Count>(0, limit.burst() + 3)}});
}

// A bucket that is used at random and records what it granted.
struct Bucket {
  Limit limit;
  Time tat{};
  std::vector<Event> events{};

  void spend(Count cost, Time now) {
    const Time before = tat;
    const Step step = gcra::spend(limit, tat, cost, now);
    tat = step.tat;
    RC_ASSERT(step.decision.burst == limit.burst());
    RC_ASSERT(step.decision.remaining >= 0 && step.decision.remaining <= limit.burst());
    if (!step.decision.allowed) {
      RC_ASSERT(tat == before);
      check_wait(step.decision, cost, now);
    } else if (cost > 0) {
      events.push_back({now, cost});
    }
  }

  // The wait is exact: the cost is allowed then and denied a nanosecond earlier. The exception: if the clock went back
  // so far that the TAT is more than a window ahead, the wait is that of a bucket that is empty now, which is the least
  // possible.
  void check_wait(const Decision& denied, Count cost, Time now) const {
    RC_ASSERT((denied.retry_after == kNever) == (cost > limit.burst()));
    if (denied.retry_after == kNever || tat - now > limit.window()) return;
    RC_ASSERT(gcra::spend(limit, tat, cost, now + denied.retry_after).decision.allowed);
    RC_ASSERT(!gcra::spend(limit, tat, cost, now + denied.retry_after - Duration{1}).decision.allowed);
  }

  void refund(Count cost, Time now) {
    tat = gcra::refund(limit, tat, cost, now).tat;
    events.push_back({now, -cost});
  }

  void reset() {
    tat = Time{};
    events.clear();
  }

  void any_action(Time now) {
    const int action = *rc::gen::weightedElement<int>({{80, 0}, {20, 1}, {1, 2}});
    const Count cost = any_cost(limit);
    if (action == 0) spend(cost, now);
    if (action == 1) refund(cost, now);
    if (action == 2) reset();
  }
};

TEST(GcraProperties, NoWindowOfAnyHistoryHoldsMoreThanThePromise) {
  EXPECT_TRUE(rc::check([] {
    Bucket bucket{any_limit()};
    Time now = at(1'000'000);
    for (int i = 0; i < 60; ++i) {
      now += any_step(bucket.limit, false);
      bucket.any_action(now);
    }
    RC_ASSERT(keeps_promise_by_reading(bucket.limit, bucket.events));
    RC_ASSERT(keeps_promise_by_step(bucket.limit, bucket.events));
  }));
}

TEST(GcraProperties, ReadingsThatRunBackGrantNothing) {
  EXPECT_TRUE(rc::check([] {
    Bucket bucket{any_limit()};
    Time now = at(1'000'000);
    for (int i = 0; i < 60; ++i) {
      now += any_step(bucket.limit, true);
      bucket.any_action(now);
    }
    RC_ASSERT(keeps_promise_by_step(bucket.limit, bucket.events));
  }));
}

TEST(GcraProperties, SpendsAloneKeepThePromiseInAnyOrderOfReadings) {
  EXPECT_TRUE(rc::check([] {
    Bucket bucket{any_limit()};
    const std::int64_t span = 4 * bucket.limit.window().count();
    for (int i = 0; i < 60; ++i) {
      bucket.spend(any_cost(bucket.limit), at(1'000'000 + *rc::gen::inRange<std::int64_t>(0, span)));
    }
    RC_ASSERT(keeps_promise_by_reading(bucket.limit, bucket.events));
  }));
}

// A plain token bucket as a reference: tokens drip in up to the burst. Counts fractions of a token, one per nanosecond
// of the interval, so nothing is rounded.
class DripBucket {
 public:
  explicit DripBucket(const Limit& limit) : burst_(limit.burst()), token_(limit.interval().count()), parts_(full()) {}

  Decision spend(Count cost, Time now) {
    fill(now);
    const Wide asked = Wide{cost} * token_;
    if (cost > burst_) return answer(false, kNever);
    if (asked > parts_) return answer(false, Duration{static_cast<std::int64_t>(asked - parts_)});
    parts_ -= asked;
    return answer(true, Duration::zero());
  }

  Decision refund(Count cost, Time now) {
    fill(now);
    parts_ = std::min(parts_ + Wide{cost} * token_, full());
    return answer(true, Duration::zero());
  }

 private:
  Wide full() const { return burst_ * token_; }

  void fill(Time now) {
    parts_ = std::min(parts_ + (now - last_).count(), full());
    last_ = now;
  }

  Decision answer(bool allowed, Duration retry_after) const {
    return {allowed, static_cast<Count>(burst_), static_cast<Count>(parts_ / token_), retry_after,
            Duration{static_cast<std::int64_t>(full() - parts_)}};
  }

  Wide burst_;
  Wide token_;
  Wide parts_;
  Time last_{};
};

TEST(GcraProperties, DecisionsAreThoseOfABucketThatDrips) {
  EXPECT_TRUE(rc::check([] {
    const Limit limit = any_limit();
    DripBucket drip(limit);
    Time tat{};
    Time now = at(1'000'000);
    for (int i = 0; i < 60; ++i) {
      now += any_step(limit, false);
      const Count cost = any_cost(limit);
      const bool refunds = *rc::gen::inRange(0, 4) == 0;
      const Step step = refunds ? gcra::refund(limit, tat, cost, now) : gcra::spend(limit, tat, cost, now);
      tat = step.tat;
      RC_ASSERT(step.decision == (refunds ? drip.refund(cost, now) : drip.spend(cost, now)));
    }
  }));
}

TEST(GcraProperties, PeekTellsWhatSpendWouldAndChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const Limit limit = any_limit();
    const Time now = at(1'000'000);
    const Time tat = now + Duration{*rc::gen::inRange<std::int64_t>(-100, 2 * limit.window().count())};
    const Count cost = any_cost(limit);
    const Decision peeked = gcra::peek(limit, tat, cost, now);
    const Decision spent = gcra::spend(limit, tat, cost, now).decision;
    RC_ASSERT(peeked.allowed == spent.allowed);
    RC_ASSERT(peeked.retry_after == spent.retry_after);
    RC_ASSERT(peeked.remaining == (spent.allowed ? spent.remaining + cost : spent.remaining));
    RC_ASSERT(gcra::spend(limit, tat, 0, now).decision.remaining == peeked.remaining);
  }));
}

TEST(GcraProperties, ASpendRefundedAtOnceLeavesEveryLaterDecisionAsItWas) {
  EXPECT_TRUE(rc::check([] {
    const Limit limit = any_limit();
    const Time now = at(1'000'000);
    const Time tat = now + Duration{*rc::gen::inRange<std::int64_t>(-100, limit.window().count() + 1)};
    const Count cost = any_cost(limit);
    const Step spent = gcra::spend(limit, tat, cost, now);
    RC_PRE(spent.decision.allowed);
    const Time back = gcra::refund(limit, spent.tat, cost, now).tat;
    for (int i = 0; i < 10; ++i) {
      const Time later = now + any_step(limit, false) * *rc::gen::inRange(0, 5);
      const Count other = any_cost(limit);
      RC_ASSERT(gcra::spend(limit, back, other, later).decision == gcra::spend(limit, tat, other, later).decision);
    }
  }));
}

TEST(GcraProperties, FewerTokensAreNeverEasierToGetThanMore) {
  EXPECT_TRUE(rc::check([] {
    const Limit limit = any_limit();
    const Time now = at(1'000'000);
    const Time tat = now + Duration{*rc::gen::inRange<std::int64_t>(-100, 2 * limit.window().count())};
    const Count cost = *rc::gen::inRange<Count>(0, limit.burst() + 1);
    const Decision less = gcra::spend(limit, tat, cost, now).decision;
    const Decision more = gcra::spend(limit, tat, cost + 1, now).decision;
    RC_ASSERT(less.allowed || !more.allowed);
    RC_ASSERT(less.retry_after <= more.retry_after);
    RC_ASSERT(gcra::spend(limit, tat, cost, now + Duration{1}).decision.allowed || !less.allowed);
  }));
}

// How a charge of several buckets returns what it reserved when a later bucket denies.
enum class GiveBack { discounted_undo, plain_refund };

// Requests that charge two of three buckets together, step by step, with any other steps in between. A reservation
// counts as spent only once its request is granted.
class TogetherHistory {
 public:
  TogetherHistory(const Limit& limit, GiveBack give_back) : limit_(limit), give_back_(give_back) {}

  void spend(std::size_t bucket, Count cost, Time now) {
    if (take(bucket, cost, now)) granted_[bucket].push_back({now, cost});
  }

  // The first half of a request, unless its first bucket denies.
  void reserve(std::size_t first, std::size_t second, Count cost, Time now) {
    if (take(first, cost, now)) open_.push_back({first, second, cost, now});
  }

  // The second half, at the reading with which the request began. If denied, the first half is returned at the current
  // reading.
  void finish(std::size_t which, Time now) {
    const Reservation r = open_[which];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
    if (take(r.second, r.cost, r.at)) {
      granted_[r.first].push_back({r.at, r.cost});
      granted_[r.second].push_back({r.at, r.cost});
    } else {
      give_back(r, now);
    }
  }

  void give_back_oldest(Time now) {
    give_back(open_.front(), now);
    open_.erase(open_.begin());
  }

  std::size_t open() const { return open_.size(); }

  bool keeps_promise() const {
    return std::all_of(granted_.begin(), granted_.end(),
                       [&](const auto& events) { return keeps_promise_by_reading(limit_, events); });
  }

 private:
  struct Reservation {
    std::size_t first;
    std::size_t second;
    Count cost;
    Time at;
  };

  bool take(std::size_t bucket, Count cost, Time now) {
    const Step step = gcra::spend(limit_, tats_[bucket], cost, now);
    tats_[bucket] = step.tat;
    return step.decision.allowed;
  }

  void give_back(const Reservation& r, Time now) {
    Time& tat = tats_[r.first];
    tat = give_back_ == GiveBack::discounted_undo ? gcra::undo(tat, limit_.price(r.cost), r.at, now)
                                                  : gcra::refund(limit_, tat, r.cost, now).tat;
  }

  Limit limit_;
  GiveBack give_back_;
  std::array<Time, 3> tats_{};
  std::array<std::vector<Event>, 3> granted_{};
  std::vector<Reservation> open_;
};

// Has its own generator: the search for a violation needs many thousands of histories, and both variants must see the
// same ones.
bool random_together_history_keeps_promise(std::uint64_t seed, GiveBack give_back) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const Limit limit = Limit::make(1, Duration{pick(5, 20)}, pick(1, 6)).value();
  TogetherHistory history(limit, give_back);
  Time now = at(1'000);
  for (int i = 0; i < 40; ++i) {
    now += Duration{pick(0, 2) == 0 ? pick(0, 2 * limit.interval().count()) : pick(0, 2)};
    // A reading may be a little old when it is used.
    const Time reading = now - Duration{pick(0, 3) == 0 ? pick(0, 3) : 0};
    const auto bucket = static_cast<std::size_t>(pick(0, 2));
    const auto other = (bucket + static_cast<std::size_t>(pick(1, 2))) % 3;
    const Count cost = pick(1, limit.burst());
    const std::int64_t action = pick(0, 9);
    if (action < 4) {
      history.spend(bucket, cost, reading);
    } else if (action < 7 || history.open() == 0) {
      history.reserve(bucket, other, cost, reading);
    } else {
      history.finish(static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(history.open()) - 1)), now);
    }
  }
  while (history.open() > 0) history.finish(0, now);
  return history.keeps_promise();
}

TEST(GcraProperties, UndoingATogetherChargeNeverCreditsTooMuch) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    ASSERT_TRUE(random_together_history_keeps_promise(seed, GiveBack::discounted_undo)) << "seed " << seed;
  }
}

TEST(GcraProperties, TheSearchWouldCatchAPlainRefundInItsPlace) {
  int violations = 0;
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    if (!random_together_history_keeps_promise(seed, GiveBack::plain_refund)) ++violations;
  }
  EXPECT_GT(violations, 0);
}

// Burst 10, interval 1 s: reserve 1 at 0, spend 9 at 0.90, return the first at 0.95, spend 1, spend 1 at 1.00.
bool textbook_race_keeps_promise(GiveBack give_back) {
  constexpr Limit limit = Limit::per_second(1).with_burst(10);
  constexpr std::int64_t ms = 1'000'000;
  const Time start = at(100'000 * ms);
  TogetherHistory history(limit, give_back);
  history.reserve(0, 1, 1, start);
  history.spend(0, 9, start + Duration{900 * ms});
  history.give_back_oldest(start + Duration{950 * ms});
  history.spend(0, 1, start + Duration{950 * ms});
  history.spend(0, 1, start + Duration{1'000 * ms});
  return history.keeps_promise();
}

TEST(GcraProperties, APlainRefundLosesTheTextbookRaceAndTheDiscountedUndoDoesNot) {
  EXPECT_FALSE(textbook_race_keeps_promise(GiveBack::plain_refund));
  EXPECT_TRUE(textbook_race_keeps_promise(GiveBack::discounted_undo));
}

}  // namespace
}  // namespace weir::gcra_properties_test
