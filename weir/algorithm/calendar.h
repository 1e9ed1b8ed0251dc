// Quotas: at most `size` tokens in each hour, day, week or month of a time zone, or in each window of a fixed length
// since 1970.
// There are two parts. The policy finds the window that contains an instant, which needs a Zone (calendar.cc). The
// stores charge a quota, a pure integer step. In: a Quota, one word of state, a cost, now. Out: the decision and the
// word to keep.
//
// Guarantee. The word names the window that was charged last. When the clock reads a later window, the word advances to
// it and starts with nothing used. A reading may also be before the word's window, because the wall clock was set back
// or because two readers are on different sides of a boundary:
//   - by one window: the charge goes to the word's window, which is the next one. So readings that alternate across a
//     boundary, in any order and any number of times, get at most `size` in each of the two windows.
//   - by more, or because the windows themselves changed: the word moves to the reading's window and keeps what was
//     used, so no request waits for the time in between. This is a set-back.
// So tokens spent minus tokens refunded in one window are at most size * (1 + set-backs), a set-back by itself frees no
// tokens, and no wait lasts beyond the end of the next window.
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
  hour,   // starts on the local hour and whenever the UTC offset changes
  day,    // starts at local midnight
  week,   // starts on Monday
  month,  // starts on the 1st
};

// Returns the window that contains an instant. Windows of one calendar and zone have no gaps or overlaps. A window
// starts at the first instant at which local clocks show its first second or later, rounded up to a whole minute of UTC
// (only historical offsets need the rounding). Costs about a microsecond, so call it only when the window has ended.
// Instants are clamped to the years 1800 to 2200.
Window window_of(Calendar calendar, const Zone& zone, Wall now) noexcept;

// Returns the quota to charge at that instant. REQUIRES: size in 1..bounds::quota_max.
Quota quota_at(Count size, Calendar calendar, const Zone& zone, Wall now) noexcept;

// The same for windows of a fixed length, counted from 1970. REQUIRES: `every` is whole seconds, at least one.
Quota quota_at(Count size, Duration every, Wall now) noexcept;

struct QuotaStep {
  Decision decision;
  // The state to store; write it if it differs. A denial changes nothing, with one exception: at a set-back the state
  // moves to the reading's window even if the cost is denied. Otherwise the denial would last until the clock has
  // caught up.
  std::uint64_t state;

  friend constexpr bool operator==(const QuotaStep&, const QuotaStep&) = default;
};

namespace quota {

// The state: {end of the window in whole minutes since 1970: 26 bits, used: 36 bits}, 62 bits in all. 0 is an unused
// quota. The last window it can represent ends in August 2097; later ones count as that one. If windows may end between
// whole minutes (Quota::is_quick), the minutes are rounded up and the 36 bits are {seconds added by rounding: 6 bits,
// used: 30 bits}. So the minutes of any state tell when it may be forgotten.
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

// Rounds up and clamps to the range of the state.
constexpr std::int64_t to_minutes(Wall wall) noexcept {
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(wall).time_since_epoch().count();
  return std::clamp<std::int64_t>(minutes, 1, kMinutesMax);
}

// Returns the end of one of that quota's windows as the state stores it.
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

// Returns the window that a charge at `now` goes to, and how much of it is used. REQUIRES: now < quota.next_end.
constexpr Usage usage_at(const Quota& quota, std::uint64_t state, Wall now) noexcept {
  const Usage usage = unpack(state, quota.is_quick());
  const std::int64_t next = to_seconds(quota, quota.next_end);
  // A store with its own clock may have entered the next window since the quota was computed.
  const std::int64_t current = now < quota.window.end ? to_seconds(quota, quota.window.end) : next;
  if (usage.end < current) return {current, 0};
  if (usage.end == current || usage.end == next) return usage;
  return {current, usage.used};
}

// Makes the decision that reports `usage`. If the quota shrank, `used` may exceed its size.
constexpr Decision answer(const Quota& quota, const Usage& usage, bool allowed, Duration retry_after,
                          Wall now) noexcept {
  const Duration left = std::max(to_wall(usage.end) - now, Duration::zero());
  return {allowed, quota.size, std::max<Count>(quota.size - usage.used, 0), retry_after,
          usage.used > 0 ? left : Duration::zero()};
}

// Takes `cost` tokens if the window has them left. A cost of 0 is always allowed. REQUIRES: cost >= 0.
constexpr QuotaStep spend(const Quota& quota, std::uint64_t state, Count cost, Wall now) noexcept {
  Usage usage = usage_at(quota, state, now);
  // A set-back: the word's window is later than the one to charge.
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

// Returns whether `cost` would be allowed, and takes nothing. `remaining` and `reset_after` are the quota's current
// ones. REQUIRES: cost >= 0.
constexpr Decision peek(const Quota& quota, std::uint64_t state, Count cost, Wall now) noexcept {
  const Decision spent = spend(quota, state, cost, now).decision;
  const Decision stands = spend(quota, state, 0, now).decision;
  return {spent.allowed, stands.burst, stands.remaining, spent.retry_after, stands.reset_after};
}

// Returns `cost` tokens, but no more than were used. Does nothing if the window has ended.
// REQUIRES: cost >= 0.
constexpr QuotaStep refund(const Quota& quota, std::uint64_t state, Count cost, Wall now) noexcept {
  Usage usage = usage_at(quota, state, now);
  if (usage.used == 0) return {answer(quota, usage, true, Duration::zero(), now), state};
  usage.used -= std::min(cost, usage.used);
  return {answer(quota, usage, true, Duration::zero(), now), pack(usage)};
}

// Takes back a spend whose request another limit denied. `window_end` is the end of the window that was charged. If the
// word has moved to another window since, nothing is returned. REQUIRES: cost >= 0.
constexpr std::uint64_t undo(const Quota& quota, std::uint64_t state, Count cost, Wall window_end) noexcept {
  Usage usage = unpack(state, quota.is_quick());
  if (usage.end != to_seconds(quota, window_end)) return state;
  usage.used -= std::min(cost, usage.used);
  return pack(usage);
}

}  // namespace quota
}  // namespace weir
