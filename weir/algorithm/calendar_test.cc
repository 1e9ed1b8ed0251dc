#include "weir/algorithm/calendar.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <vector>

namespace weir::calendar_test {
namespace {

using namespace std::chrono;
using namespace std::chrono_literals;

Zone zone(std::string_view name) {
  Result<Zone> loaded = Zone::load(name);
  EXPECT_TRUE(loaded) << name;
  return loaded ? *loaded : Zone();
}

constexpr Wall utc(int y, unsigned m, unsigned d, Duration time = 0s) {
  return sys_days{year{y} / month{m} / day{d}} + time;
}

TEST(WindowOf, CountsInUtcWithoutAZone) {
  const Wall now = utc(2024, 2, 14, 13h + 5min);
  EXPECT_EQ(window_of(Calendar::hour, Zone(), now), (Window{utc(2024, 2, 14, 13h), utc(2024, 2, 14, 14h)}));
  EXPECT_EQ(window_of(Calendar::day, Zone(), now), (Window{utc(2024, 2, 14), utc(2024, 2, 15)}));
  EXPECT_EQ(window_of(Calendar::week, Zone(), now), (Window{utc(2024, 2, 12), utc(2024, 2, 19)}));
  EXPECT_EQ(window_of(Calendar::month, Zone(), now), (Window{utc(2024, 2, 1), utc(2024, 3, 1)}));
}

TEST(WindowOf, BeginsAtItsFirstInstantAndEndsBeforeItsLast) {
  EXPECT_EQ(window_of(Calendar::day, Zone(), utc(2024, 2, 14)).start, utc(2024, 2, 14));
  EXPECT_EQ(window_of(Calendar::day, Zone(), utc(2024, 2, 14) - 1ns).start, utc(2024, 2, 13));
  EXPECT_EQ(window_of(Calendar::week, Zone(), utc(1970, 1, 1)).start, utc(1969, 12, 29));
  EXPECT_EQ(window_of(Calendar::month, Zone(), utc(1970, 1, 1) - 1ns).start, utc(1969, 12, 1));
  EXPECT_EQ(window_of(Calendar::month, Zone(), utc(2024, 12, 31)), (Window{utc(2024, 12, 1), utc(2025, 1, 1)}));
}

TEST(WindowOf, DaysOfTwentyThreeAndTwentyFiveHoursComeOutRight) {
  const Zone london = zone("Europe/London");
  EXPECT_EQ(window_of(Calendar::day, london, utc(2024, 3, 31, 12h)), (Window{utc(2024, 3, 31), utc(2024, 3, 31, 23h)}));
  EXPECT_EQ(window_of(Calendar::day, london, utc(2024, 10, 27, 12h)),
            (Window{utc(2024, 10, 26, 23h), utc(2024, 10, 28)}));
  const Window week = window_of(Calendar::week, london, utc(2024, 3, 31, 12h));
  EXPECT_EQ(week, (Window{utc(2024, 3, 25), utc(2024, 3, 31, 23h)}));
  EXPECT_EQ(week.end - week.start, 167h);
  EXPECT_EQ(window_of(Calendar::month, london, utc(2024, 4, 1)),
            (Window{utc(2024, 3, 31, 23h), utc(2024, 4, 30, 23h)}));
}

TEST(WindowOf, ADayWhoseMidnightIsSkippedBeginsAfterTheGap) {
  const Zone z = zone("America/Sao_Paulo");
  EXPECT_EQ(window_of(Calendar::day, z, utc(2018, 11, 4, 12h)), (Window{utc(2018, 11, 4, 3h), utc(2018, 11, 5, 2h)}));
  // If clocks go back at midnight, the previous day has 25 hours.
  EXPECT_EQ(window_of(Calendar::day, z, utc(2019, 2, 17, 2h)), (Window{utc(2019, 2, 16, 2h), utc(2019, 2, 17, 3h)}));
}

TEST(WindowOf, ADayWhoseMidnightComesTwiceBeginsWithTheFirst) {
  EXPECT_EQ(window_of(Calendar::day, zone("America/Havana"), utc(2024, 11, 3, 5h)),
            (Window{utc(2024, 11, 3, 4h), utc(2024, 11, 4, 5h)}));
  // Newfoundland's clocks went back at 00:01: one minute of the new day, then an hour of the old day again, then the
  // rest of the new day. The new day starts with that first minute.
  EXPECT_EQ(window_of(Calendar::day, zone("America/St_Johns"), utc(2010, 11, 7, 3h)),
            (Window{utc(2010, 11, 7, 2h + 30min), utc(2010, 11, 8, 3h + 30min)}));
}

TEST(WindowOf, ADayThatNeverWasHasNoWindow) {
  const Zone z = zone("Pacific/Apia");
  const Window thursday = window_of(Calendar::day, z, utc(2011, 12, 30, 10h) - 1ns);
  const Window saturday = window_of(Calendar::day, z, utc(2011, 12, 30, 10h));
  EXPECT_EQ(thursday.end, saturday.start);
  EXPECT_EQ(saturday.end - saturday.start, 24h);
}

TEST(WindowOf, HoursBeginOnTheLocalHour) {
  EXPECT_EQ(window_of(Calendar::hour, zone("Asia/Kolkata"), utc(2024, 7, 1, 12h)),
            (Window{utc(2024, 7, 1, 11h + 30min), utc(2024, 7, 1, 12h + 30min)}));
  // The hour that repeats in New York is two windows.
  const Zone new_york = zone("America/New_York");
  EXPECT_EQ(window_of(Calendar::hour, new_york, utc(2024, 11, 3, 5h + 30min)),
            (Window{utc(2024, 11, 3, 5h), utc(2024, 11, 3, 6h)}));
  EXPECT_EQ(window_of(Calendar::hour, new_york, utc(2024, 11, 3, 6h + 30min)),
            (Window{utc(2024, 11, 3, 6h), utc(2024, 11, 3, 7h)}));
  // Lord Howe's clocks go back half an hour at two: that half hour is a separate window.
  EXPECT_EQ(window_of(Calendar::hour, zone("Australia/Lord_Howe"), utc(2024, 4, 6, 15h)),
            (Window{utc(2024, 4, 6, 15h), utc(2024, 4, 6, 15h + 30min)}));
}

TEST(WindowOf, RoundsTheOffsetsOfLongAgoUpToAMinute) {
  // Liberia was 44 minutes and 30 seconds behind until 1972.
  const Zone z = zone("Africa/Monrovia");
  EXPECT_EQ(window_of(Calendar::day, z, utc(1971, 6, 1, 12h)),
            (Window{utc(1971, 6, 1, 45min), utc(1971, 6, 2, 45min)}));
  EXPECT_EQ(window_of(Calendar::day, z, utc(1971, 6, 2, 45min) - 1ns).end, utc(1971, 6, 2, 45min));
  EXPECT_EQ(window_of(Calendar::hour, z, utc(1971, 6, 2, 44min + 45s)).end, utc(1971, 6, 2, 45min));
}

TEST(WindowOf, TakesInstantsOutsideItsYearsForTheNearest) {
  for (const Calendar calendar : {Calendar::hour, Calendar::day, Calendar::week, Calendar::month}) {
    EXPECT_EQ(window_of(calendar, Zone(), Wall::max()), window_of(calendar, Zone(), utc(2200, 1, 1)));
    EXPECT_EQ(window_of(calendar, Zone(), Wall::min()), window_of(calendar, Zone(), utc(1800, 1, 1)));
  }
}

TEST(WindowOf, WindowsTileTimeWithoutGapOrOverlap) {
  std::vector<Zone> zones{Zone()};
  for (const std::string_view name :
       {"Europe/London", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo",
        "Africa/Casablanca", "Pacific/Apia", "America/Havana", "America/St_Johns", "Africa/Monrovia", "Asia/Gaza"}) {
    zones.push_back(zone(name));
  }
  EXPECT_TRUE(rc::check([&] {
    const Zone z = *rc::gen::elementOf(zones);
    const auto calendar = *rc::gen::element(Calendar::hour, Calendar::day, Calendar::week, Calendar::month);
    // Half of the instants are near a change of the clocks.
    Wall now = utc(1900, 1, 1) + seconds{*rc::gen::inRange<std::int64_t>(0, 6'311'433'600)};
    if (*rc::gen::arbitrary<bool>())
      now = std::min(z.span_at(now).end, utc(2100, 1, 1)) + minutes{*rc::gen::inRange(-3000, 3000)};
    const Window window = window_of(calendar, z, now);
    RC_ASSERT(window.start <= now && now < window.end);
    RC_ASSERT(floor<minutes>(window.start) == window.start);
    RC_ASSERT(floor<minutes>(window.end) == window.end);
    RC_ASSERT(window_of(calendar, z, window.start) == window);
    RC_ASSERT(window_of(calendar, z, window.end - 1ns) == window);
    RC_ASSERT(window_of(calendar, z, window.end).start == window.end);
    RC_ASSERT(window_of(calendar, z, window.start - 1ns).end == window.start);
    const Quota quota = quota_at(1, calendar, z, now);
    RC_ASSERT(quota.window == window);
    RC_ASSERT(quota.next_end == window_of(calendar, z, window.end).end);
  }));
}

// Three one-hour windows; the reading is in the first.
constexpr Wall kNine = utc(2024, 2, 14, 9h);
constexpr Quota hourly(Count size, Wall now) {
  const Wall start = floor<hours>(now);
  return {size, {start, start + 1h}, start + 2h};
}
constexpr Quota kFive = hourly(5, kNine);

constexpr QuotaStep kFirst = quota::spend(kFive, 0, 2, kNine + 10min);
static_assert(kFirst.decision == Decision{true, 5, 3, 0ns, 50min});
static_assert(quota::end_of(kFirst.state) == kNine + 1h);
static_assert(kFirst.state < std::uint64_t{1} << 62);

// A cost equal to what is left is allowed, one more is denied, and a denial changes nothing.
static_assert(quota::spend(kFive, kFirst.state, 3, kNine + 20min).decision == Decision{true, 5, 0, 0ns, 40min});
static_assert(quota::spend(kFive, kFirst.state, 4, kNine + 20min) ==
              QuotaStep{{false, 5, 3, 40min, 40min}, kFirst.state});
static_assert(quota::spend(kFive, kFirst.state, 6, kNine + 20min) ==
              QuotaStep{{false, 5, 3, kNever, 40min}, kFirst.state});
static_assert(quota::spend(kFive, 0, std::numeric_limits<Count>::max(), kNine).decision ==
              Decision{false, 5, 5, kNever, 0ns});

// A cost of 0 takes nothing, and an unused quota has nothing to reset.
static_assert(quota::spend(kFive, kFirst.state, 0, kNine) == QuotaStep{{true, 5, 3, 0ns, 1h}, kFirst.state});
static_assert(quota::spend(kFive, 0, 0, kNine) == QuotaStep{{true, 5, 5, 0ns, 0ns}, 0});

// The next window starts unused, exact to the nanosecond.
constexpr QuotaStep kSpent = quota::spend(kFive, 0, 5, kNine);
static_assert(quota::spend(kFive, kSpent.state, 1, kNine + 1h - 1ns).decision == Decision{false, 5, 0, 1ns, 1ns});
static_assert(quota::spend(hourly(5, kNine + 1h), kSpent.state, 1, kNine + 1h).decision ==
              Decision{true, 5, 4, 0ns, 1h});
// Also for a store whose clock is already in it while the quota still names the previous window.
static_assert(quota::spend(kFive, kSpent.state, 1, kNine + 1h).decision == Decision{true, 5, 4, 0ns, 1h});

// If the size shrinks below what is used, the remainder is 0, not negative.
static_assert(quota::spend(hourly(3, kNine), kSpent.state, 1, kNine).decision == Decision{false, 3, 0, 1h, 1h});
static_assert(quota::peek(hourly(3, kNine), kSpent.state, 0, kNine) == Decision{true, 3, 0, 0ns, 1h});
static_assert(quota::refund(hourly(3, kNine), kSpent.state, 1, kNine).decision == Decision{true, 3, 0, 0ns, 1h});

static_assert(quota::peek(kFive, kFirst.state, 3, kNine) == Decision{true, 5, 3, 0ns, 1h});
static_assert(quota::peek(kFive, kFirst.state, 4, kNine) == Decision{false, 5, 3, 1h, 1h});

static_assert(quota::refund(kFive, kSpent.state, 2, kNine).decision == Decision{true, 5, 2, 0ns, 1h});
static_assert(quota::refund(kFive, kSpent.state, std::numeric_limits<Count>::max(), kNine).decision ==
              Decision{true, 5, 5, 0ns, 0ns});
static_assert(quota::refund(kFive, 0, 2, kNine) == QuotaStep{{true, 5, 5, 0ns, 0ns}, 0});
static_assert(quota::refund(hourly(5, kNine + 1h), kSpent.state, 2, kNine + 1h) ==
                  QuotaStep{{true, 5, 5, 0ns, 0ns}, kSpent.state},
              "what was used in a window that has ended cannot come back");

static_assert(quota::undo(kFive, kSpent.state, 2, kNine + 1h) == quota::spend(kFive, 0, 3, kNine).state);
static_assert(quota::undo(kFive, kSpent.state, 7, kNine + 1h) == quota::pack({quota::to_minutes(kNine + 1h) * 60, 0}));
static_assert(quota::undo(kFive, kSpent.state, 2, kNine) == kSpent.state, "another window's spend");

// The largest quota fits its bits.
constexpr Quota kLargest = hourly(bounds::quota_max, kNine);
static_assert(quota::spend(kLargest, 0, bounds::quota_max, kNine).decision.remaining == 0);
static_assert(quota::end_of(quota::spend(kLargest, 0, bounds::quota_max, kNine).state) == kNine + 1h);
static_assert(quota::spend(kLargest, 0, bounds::quota_max + 1, kNine).decision.retry_after == kNever);

// The last window that the state can represent, and the one after it.
constexpr Wall kLastEnd = Wall{minutes{quota::kMinutesMax}};
static_assert(kLastEnd > utc(2097, 8, 1));
static_assert(quota::to_minutes(kLastEnd) == quota::kMinutesMax &&
              quota::to_minutes(kLastEnd + 1min) == quota::kMinutesMax);
static_assert(quota::to_minutes(utc(1960, 1, 1)) == 1);

// Windows of a fixed length: the second of their end is part of the state.
TEST(Quota, WindowsOfAFixedLengthMayEndBetweenMinutes) {
  const Wall now = kNine + 95s;
  const Quota ninety = quota_at(4, 90s, now);
  EXPECT_EQ(ninety.window, (Window{kNine + 90s, kNine + 180s})) << "9:00 is a multiple of 90 seconds since 1970";
  EXPECT_EQ(ninety.next_end, kNine + 270s);
  const QuotaStep spent = quota::spend(ninety, 0, 3, now);
  EXPECT_EQ(spent.decision, (Decision{true, 4, 1, 0ns, 85s}));
  EXPECT_FALSE(quota::spend(ninety, spent.state, 2, now).decision.allowed);
  EXPECT_GE(quota::end_of(spent.state), ninety.window.end) << "not forgotten too early";
  const Wall later = kNine + 180s;
  const Quota next = quota_at(4, 90s, later);
  EXPECT_EQ(next.window.end, kNine + 270s);
  const QuotaStep anew = quota::spend(next, spent.state, 4, later);
  EXPECT_TRUE(anew.decision.allowed);
  EXPECT_EQ(quota::undo(next, anew.state, 4, next.window.end),
            quota::pack({quota::to_seconds(next, next.window.end), 0}));
  EXPECT_EQ(quota::undo(next, anew.state, 4, ninety.window.end), anew.state) << "another window's spend";
  EXPECT_EQ(quota::unpack(
                quota::spend(quota_at(bounds::quick_quota_max, 1s, now), 0, bounds::quick_quota_max, now).state, true)
                .used,
            bounds::quick_quota_max);
}

TEST(Quota, ReadingsOnEitherSideOfABoundaryShareTheLaterWindow) {
  std::uint64_t state = quota::spend(kFive, 0, 5, kNine + 59min).state;
  state = quota::spend(hourly(5, kNine + 1h), state, 4, kNine + 1h).state;
  // A reading before the boundary is charged to the window after it: there is one token left, then none.
  const QuotaStep behind = quota::spend(kFive, state, 1, kNine + 59min);
  EXPECT_EQ(behind.decision, (Decision{true, 5, 0, 0ns, 61min}));
  EXPECT_EQ(quota::spend(kFive, behind.state, 1, kNine + 59min).decision, (Decision{false, 5, 0, 61min, 61min}));
  EXPECT_FALSE(quota::spend(hourly(5, kNine + 1h), behind.state, 1, kNine + 1h).decision.allowed);
}

TEST(Quota, AClockSetFarBackKeepsWhatWasUsedAndCostsOneWindow) {
  const std::uint64_t ahead = quota::spend(hourly(5, kNine + 1000h), 0, 5, kNine + 1000h).state;
  const QuotaStep back = quota::spend(kFive, ahead, 1, kNine);
  EXPECT_EQ(back.decision, (Decision{false, 5, 0, 1h, 1h}));
  EXPECT_EQ(quota::end_of(back.state), kNine + 1h) << "the denial itself brings the state back";
  EXPECT_EQ(quota::spend(hourly(5, kNine + 1h), back.state, 1, kNine + 1h).decision, (Decision{true, 5, 4, 0ns, 1h}));
  EXPECT_EQ(quota::peek(kFive, ahead, 1, kNine), (Decision{false, 5, 0, 1h, 1h}));
}

TEST(Quota, AFullRefundDoesNotReopenTheWindowBefore) {
  std::uint64_t state = quota::spend(kFive, 0, 5, kNine).state;
  state = quota::spend(hourly(5, kNine + 1h), state, 1, kNine + 1h).state;
  state = quota::refund(kFive, state, 1, kNine).state;
  EXPECT_EQ(quota::end_of(quota::spend(kFive, state, 1, kNine).state), kNine + 2h);
}

// Makes random steps on a quota and records the net charge of each window.
struct History {
  std::uint64_t state = 0;
  std::map<Wall, Count> net;  // by the end of the window charged
  Count set_backs = 0;

  void step(const Quota& quota, Count cost, Wall now) {
    const Wall before = quota::end_of(state);
    if (before > quota.next_end) ++set_backs;
    const int action = *rc::gen::weightedElement<int>({{6, 0}, {1, 1}, {1, 2}, {2, 3}});
    if (action == 0) spend(quota, cost, now);
    if (action == 1) refund(quota, cost, now);
    if (action == 2) RC_ASSERT(quota::peek(quota, state, cost, now).burst == quota.size);
    if (action == 3) spend_and_undo(quota, cost, now);
  }

  void spend(const Quota& quota, Count cost, Wall now) {
    const Decision peeked = quota::peek(quota, state, cost, now);
    const QuotaStep done = quota::spend(quota, state, cost, now);
    RC_ASSERT(peeked.allowed == done.decision.allowed && peeked.retry_after == done.decision.retry_after);
    RC_ASSERT(done.decision.remaining >= 0 && done.decision.remaining <= quota.size);
    RC_ASSERT(done.decision.reset_after <= quota.next_end - now);
    if (done.decision.allowed && cost > 0) net[quota::end_of(done.state)] += cost;
    if (!done.decision.allowed) {
      RC_ASSERT(done.state == state || quota::end_of(state) > quota.next_end);
      RC_ASSERT(quota::peek(quota, done.state, cost, now) == peeked);
      const Duration wait = done.decision.retry_after;
      RC_ASSERT((cost > quota.size ? wait == kNever : wait > 0ns && wait <= quota.next_end - now));
    }
    state = done.state;
  }

  void refund(const Quota& quota, Count cost, Wall now) {
    const Count used = quota::usage_at(quota, state, now).used;
    const QuotaStep done = quota::refund(quota, state, cost, now);
    net[quota::end_of(done.state)] -= std::min(cost, used);
    state = done.state;
  }

  void spend_and_undo(const Quota& quota, Count cost, Wall now) {
    const QuotaStep done = quota::spend(quota, state, cost, now);
    state = done.state;
    if (!done.decision.allowed || cost == 0) return;
    const std::uint64_t undone = quota::undo(quota, done.state, cost, quota::end_of(done.state));
    RC_ASSERT(quota::unpack(undone).used == quota::unpack(done.state).used - cost);
    state = undone;
  }
};

TEST(Quota, TogglingAcrossABoundaryNeverGrantsMoreThanTheSizeOfEachWindow) {
  EXPECT_TRUE(rc::check([] {
    const Count size = *rc::gen::inRange<Count>(1, 20);
    History history;
    Wall latest = kNine;  // the furthest window entered; readings stay within one window of it
    for (int i = 0; i < 60; ++i) {
      const auto ahead = *rc::gen::weightedElement<int>({{5, -1}, {5, 0}, {1, 1}});
      const Wall now = floor<hours>(latest) + ahead * 1h + seconds{*rc::gen::inRange(0, 3600)};
      latest = std::max(latest, now);
      history.step(hourly(size, now), *rc::gen::inRange<Count>(0, size + 2), now);
    }
    RC_ASSERT(history.set_backs == 0);
    for (const auto& [end, net] : history.net) RC_ASSERT(net <= size);
  }));
}

TEST(Quota, EachSetBackGrantsAtMostOneSizeMore) {
  EXPECT_TRUE(rc::check([] {
    const Count size = *rc::gen::inRange<Count>(1, 20);
    History history;
    for (int i = 0; i < 60; ++i) {
      const Wall now = kNine + seconds{*rc::gen::inRange(0, 6 * 3600)};
      history.step(hourly(size, now), *rc::gen::inRange<Count>(0, size + 2), now);
    }
    for (const auto& [end, net] : history.net) RC_ASSERT(net <= size * (1 + history.set_backs));
  }));
}

// The same with a store's own clock, up to one window ahead of the clock that the quota was computed with.
TEST(Quota, AStoreAheadOfTheQuotaGrantsNoMore) {
  EXPECT_TRUE(rc::check([] {
    const Count size = *rc::gen::inRange<Count>(1, 20);
    History history;
    Wall now = kNine;
    for (int i = 0; i < 60; ++i) {
      now += seconds{*rc::gen::inRange(0, 1200)};
      const Wall behind = now - seconds{*rc::gen::inRange(0, 3599)};
      const Wall asked = floor<hours>(behind) < floor<hours>(now) - 1h ? now : behind;
      history.step(hourly(size, asked), *rc::gen::inRange<Count>(0, size + 2), now);
    }
    RC_ASSERT(history.set_backs == 0);
    for (const auto& [end, net] : history.net) RC_ASSERT(net <= size);
  }));
}

}  // namespace
}  // namespace weir::calendar_test
