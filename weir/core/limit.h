// A limit's parameters: `count` tokens are added every `period`; a bucket holds at most `burst`.
// Checked on construction, so the arithmetic in algorithm/gcra.h needs no overflow checks.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"

namespace weir {

// Tokens. Signed, because differences of counts are counts.
using Count = std::int64_t;

// A sum that does not fit saturates, which is above any burst. REQUIRES: a >= 0, b >= 0.
constexpr Count saturating_sum(Count a, Count b) noexcept {
  return a > std::numeric_limits<Count>::max() - b ? std::numeric_limits<Count>::max() : a + b;
}

class Limit {
 public:
  // For numbers known only at run time. The Error names the field, its value and the rule.
  static Result<Limit> make(Count count, Duration period, Count burst);

  // For numbers in the source: a bad constant does not compile. The burst equals the count unless with_burst() changes
  // it.
  static consteval Limit per(Count count, Duration period) { return checked(count, period, count); }
  static consteval Limit per_second(Count count) { return per(count, std::chrono::seconds{1}); }
  static consteval Limit per_minute(Count count) { return per(count, std::chrono::minutes{1}); }
  static consteval Limit per_hour(Count count) { return per(count, std::chrono::hours{1}); }
  static consteval Limit per_day(Count count) { return per(count, std::chrono::days{1}); }
  consteval Limit with_burst(Count burst) const { return checked(count_, period_, burst); }

  constexpr Count count() const noexcept { return count_; }
  constexpr Duration period() const noexcept { return period_; }
  constexpr Count burst() const noexcept { return burst_; }
  // Time to earn one token, rounded up so that the rate never exceeds the limit.
  constexpr Duration interval() const noexcept { return interval_; }
  // Time from empty to full.
  constexpr Duration window() const noexcept { return interval_ * burst_; }
  // Time to earn `cost` tokens. A cost above the burst counts as the whole bucket, so this cannot overflow.
  constexpr Duration price(Count cost) const noexcept { return cost < burst_ ? interval_ * cost : window(); }
  // The time that a refund of `cost` tokens returns. Not capped like price(): the burst may have been larger when they
  // were taken. REQUIRES: cost >= 0.
  constexpr Duration worth(Count cost) const noexcept {
    return cost <= Duration::max() / interval_ ? interval_ * cost : Duration::max();
  }

  // The same rate with a smaller bucket. REQUIRES: 0 <= tokens < burst().
  constexpr Limit less(Count tokens) const noexcept {
    Limit smaller = *this;
    smaller.burst_ -= tokens;
    return smaller;
  }

  friend constexpr bool operator==(const Limit&, const Limit&) = default;

 private:
  enum class Flaw { none, count, period, count_over_period, burst, window };

  constexpr Limit(Count count, Duration period, Count burst) noexcept
      : count_(count), burst_(burst), period_(period), interval_(ceil_div(period, count)) {}

  static constexpr Duration ceil_div(Duration period, Count count) noexcept {
    return Duration{period.count() / count + (period.count() % count != 0 ? 1 : 0)};
  }

  static constexpr Flaw check(Count count, Duration period, Count burst) noexcept {
    if (count < 1) return Flaw::count;
    if (period <= Duration::zero()) return Flaw::period;
    if (count > period.count()) return Flaw::count_over_period;
    if (burst < 1) return Flaw::burst;
    if (ceil_div(period, count).count() > bounds::window_max.count() / burst) return Flaw::window;
    return Flaw::none;
  }

  // Not constexpr on purpose: reaching it in a constant expression is the compile error.
  static void this_limit_breaks_a_rule() noexcept {}

  static consteval Limit checked(Count count, Duration period, Count burst) {
    if (check(count, period, burst) != Flaw::none) this_limit_breaks_a_rule();
    return Limit(count, period, burst);
  }

  Count count_;
  Count burst_;
  Duration period_;
  Duration interval_;
};

}  // namespace weir
