// Quotas: at most `size` tokens in each hour, day, week or month of a time zone, or in each window of a fixed length
// since 1970.
// Two halves. Which window holds an instant needs a Zone and belongs to the policy (calendar.cc). The step that charges
// a quota is pure integers and belongs to the stores: in goes a Quota, one word of state, a cost and now; out come the
// decision and the word to keep.
//
// The promise. The word names the window that was charged last. It moves on to a later window when a reading lies in
// one, and then starts with nothing used. A reading may also lie before the word's window, because the wall clock was
// set back or because two readers stand on either side of a boundary:
//   - by one window: the charge goes to the word's window, which is the next one. So readings that toggle across a
//     boundary, in any order and any number of times, are granted at most `size` in each of the two windows.
//   - by more, or because the windows themselves were changed: the word is carried into the window of the reading with
//     all that was used, and the time in between is not waited for. This is a set-back.
// So tokens spent minus tokens refunded in one window are at most size * (1 + set-backs), a set-back frees nothing by
// itself, and no wait is longer than to the end of the next window.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "weir/base/bounds.h"
#include "weir/base/time.h"
#include "weir/base/zone.h"
#include "weir/core/decision.h"
#include "weir/core/quota.h"

namespace weir {

enum class Calendar : unsigned char {
  hour,   // begins on the local hour and at each change of the clocks
  day,    // at local midnight
  week,   // on Monday
  month,  // on the 1st
};

// The window that holds an instant. Windows of one calendar and zone follow each other without gap or overlap. One
// begins with the first instant at which local clocks show its first second or later, rounded up to a whole minute of
// UTC (which only the offsets of long ago need). Costs about a microsecond: ask again when the window has ended.
// Instants outside the years 1800 to 2200 are taken for the nearest inside.
Window window_of(Calendar calendar, const Zone& zone, Wall now) noexcept;

// What to charge at that instant. REQUIRES: size in 1..bounds::quota_max.
Quota quota_at(Count size, Calendar calendar, const Zone& zone, Wall now) noexcept;

// The same in windows of a fixed length since 1970. REQUIRES: `every` is whole seconds, at least one.
Quota quota_at(Count size, Duration every, Wall now) noexcept;

struct QuotaStep {
  Decision decision;
  // To keep. A denial changes nothing, with one exception: at a set-back the state moves to the reading's window even
  // if the answer is no, or the denial would last until the clock has caught up. So: write if it differs.
  std::uint64_t state;

  friend constexpr bool operator==(const QuotaStep&, const QuotaStep&) = default;
};

namespace quota {

// The state: {end of the window in whole minutes since 1970: 26 bits, used: 36 bits}, 62 bits in all. 0 is an untouched
// quota. The last window it can name ends in August 2097; later ones count as that one. Where windows may end between
// two minutes (Quota::is_quick) the minutes are rounded up and `used` is {seconds that this added: 6 bits, used: 30
// bits}: of such a state, too, the minute tells when it may be forgotten.
inline constexpr int kUsedBits = 36;
inline constexpr int kQuickUsedBits = 30;
inline constexpr std::int64_t kMinutesMax = (std::int64_t{1} << 26) - 1;
inline constexpr std::int64_t kSecondsMax = kMinutesMax * 60;
static_assert(bounds::quota_max == (std::int64_t{1} << kUsedBits) - 1);
static_assert(bounds::quick_quota_max == (std::int64_t{1} << kQuickUsedBits) - 1);

struct Usage {
  std::int64_t end = 0;  // seconds since 1970
  Count used = 0;

  friend constexpr bool operator==(const Usage&, const Usage&) = default;
};

constexpr Usage unpack(std::uint64_t state, bool quick = false) noexcept {
  const std::int64_t end = static_cast<std::int64_t>(state >> kUsedBits) * 60;
  if (!quick) return {end, static_cast<Count>(state & bounds::quota_max)};
  const auto early = static_cast<std::int64_t>((state & bounds::quota_max) >> kQuickUsedBits);
  return {end - early, static_cast<Count>(state & bounds::quick_quota_max)};
}

// REQUIRES: used <= bounds::quick_quota_max, or the end is a whole minute.
constexpr std::uint64_t pack(const Usage& usage) noexcept {
  const auto minutes = static_cast<std::uint64_t>((usage.end + 59) / 60);
  const std::uint64_t early = minutes * 60 - static_cast<std::uint64_t>(usage.end);
  return minutes << kUsedBits | early << kQuickUsedBits | static_cast<std::uint64_t>(usage.used);
}

// Rounded up and cut to what the state can name.
constexpr std::int64_t to_minutes(Wall wall) noexcept {
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(wall).time_since_epoch().count();
  return std::clamp<std::int64_t>(minutes, 1, kMinutesMax);
}

// The end of a window of that quota, as a state has it.
constexpr std::int64_t to_seconds(const Quota& quota, Wall end) noexcept {
  if (!quota.is_quick()) return to_minutes(end) * 60;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(end).time_since_epoch().count();
  return std::clamp<std::int64_t>(seconds, 1, kSecondsMax);
}

constexpr Wall to_wall(std::int64_t seconds) noexcept {
  return Wall{std::chrono::seconds{seconds}};
}

// When the window of a state ends, rounded up to a minute: from then on the state may be forgotten without loss.
constexpr Wall end_of(std::uint64_t state) noexcept {
  return to_wall(unpack(state).end);
}

// The window a charge at `now` goes to, and what is used of it. REQUIRES: now < quota.next_end.
constexpr Usage usage_at(const Quota& quota, std::uint64_t state, Wall now) noexcept {
  const Usage usage = unpack(state, quota.is_quick());
  const std::int64_t next = to_seconds(quota, quota.next_end);
  // A store with a clock of its own may have entered the next window since the quota was made.
  const std::int64_t current = now < quota.window.end ? to_seconds(quota, quota.window.end) : next;
  if (usage.end < current) return {current, 0};
  if (usage.end == current || usage.end == next) return usage;
  return {current, usage.used};
}

// The answer for a usage after what was asked of it. Numbers that shrank may leave more used than there is.
constexpr Decision answer(const Quota& quota, const Usage& usage, bool allowed, Duration retry_after,
                          Wall now) noexcept {
  const Duration left = std::max(to_wall(usage.end) - now, Duration::zero());
  return {allowed, quota.size, std::max<Count>(quota.size - usage.used, 0), retry_after,
          usage.used > 0 ? left : Duration::zero()};
}

// REQUIRES: cost >= 0. A cost of 0 takes nothing and always passes.
constexpr QuotaStep spend(const Quota& quota, std::uint64_t state, Count cost, Wall now) noexcept {
  Usage usage = usage_at(quota, state, now);
  // A set-back: the word's window lies ahead of the one to charge.
  const std::uint64_t kept = usage.end < unpack(state, quota.is_quick()).end ? pack(usage) : state;
  if (cost == 0) return {answer(quota, usage, true, Duration::zero(), now), state};
  if (cost > quota.size) return {answer(quota, usage, false, kNever, now), kept};
  if (cost > quota.size - usage.used) {
    const Duration wait = std::max(to_wall(usage.end) - now, Duration::zero());
    return {answer(quota, usage, false, wait, now), kept};
  }
  usage.used += cost;
  return {answer(quota, usage, true, Duration::zero(), now), pack(usage)};
}

// Returns whether `cost` would pass. Takes nothing: remaining and reset_after are the quota's own. REQUIRES: cost >= 0.
constexpr Decision peek(const Quota& quota, std::uint64_t state, Count cost, Wall now) noexcept {
  const Decision spent = spend(quota, state, cost, now).decision;
  const Decision stands = spend(quota, state, 0, now).decision;
  return {spent.allowed, stands.burst, stands.remaining, spent.retry_after, stands.reset_after};
}

// Gives `cost` back, never beyond nothing used; of a window that has ended there is nothing to give back.
// REQUIRES: cost >= 0.
constexpr QuotaStep refund(const Quota& quota, std::uint64_t state, Count cost, Wall now) noexcept {
  Usage usage = usage_at(quota, state, now);
  if (usage.used == 0) return {answer(quota, usage, true, Duration::zero(), now), state};
  usage.used -= std::min(cost, usage.used);
  return {answer(quota, usage, true, Duration::zero(), now), pack(usage)};
}

// Takes back a spend whose request was denied elsewhere. `window_end` is the end of the window that was charged: if the
// word has gone to another window since, nothing is given back. REQUIRES: cost >= 0.
constexpr std::uint64_t undo(const Quota& quota, std::uint64_t state, Count cost, Wall window_end) noexcept {
  Usage usage = unpack(state, quota.is_quick());
  if (usage.end != to_seconds(quota, window_end)) return state;
  usage.used -= std::min(cost, usage.used);
  return pack(usage);
}

}  // namespace quota
}  // namespace weir
