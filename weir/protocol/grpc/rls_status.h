// The status of one descriptor in a response, in the units of Envoy's rate limit service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/time.h"
#include "weir/core/answer.h"

namespace weir::rls {

struct Status {
  bool over = false;
  bool has_limit = false;  // false: the rest, but for `remaining`, means nothing
  std::uint32_t requests_per_unit = 0;
  int unit = 0;  // of RateLimitResponse.RateLimit.Unit; 0: none of them
  std::uint32_t multiplier = 1;
  std::string_view name;
  std::uint32_t remaining = 0;
  std::int64_t reset_seconds = 0;

  // True if this status, not `other`, is the one that the client must obey.
  bool is_stricter_than(const Status& other) const noexcept {
    return over != other.over ? over : remaining < other.remaining;
  }
};

// `remaining` of a descriptor without a limit.
inline constexpr std::uint32_t kUnlimited = 0xffff'ffff;

// Returns the status of the i-th descriptor. REQUIRES: i < answer.descriptors.size().
Status status_of(const Answer& answer, std::size_t i) noexcept;

// Returns how long to wait before the same request may pass, rounded up, at least 1: all limits that enforce must have
// room, and one of the alternatives. nullopt if no wait helps or nothing denied.
std::optional<std::int64_t> retry_seconds(const Answer& answer) noexcept;

}  // namespace weir::rls
