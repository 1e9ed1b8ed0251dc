// One limit to charge for one id, with everything resolved except the bucket's state.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "weir/base/time.h"
#include "weir/core/key.h"
#include "weir/core/limit.h"
#include "weir/core/quota.h"
#include "weir/core/verdict.h"

namespace weir {

// How a request is decided when the store is unavailable.
enum class FailurePolicy : unsigned char { pass_through, fail_closed, in_memory_fallback };

// As spelled in the configuration.
constexpr std::string_view print(FailurePolicy policy) noexcept {
  switch (policy) {
    case FailurePolicy::pass_through:
      return "passThrough";
    case FailurePolicy::fail_closed:
      return "failClosed";
    case FailurePolicy::in_memory_fallback:
      break;
  }
  return "inMemoryFallback";
}

// A server may take `tokens` tokens of a shared bucket at once, and `servers` servers may do so (store/redis).
struct Lease {
  Count tokens = 0;  // 0: none
  Count servers = 0;

  friend constexpr bool operator==(const Lease&, const Lease&) = default;
};

// Where the numbers in force come from.
enum class Source : unsigned char { limit, schedule, tier, override, external, adjustment, caller };

constexpr std::string_view print(Source source) noexcept {
  switch (source) {
    case Source::limit:
      return "limit";
    case Source::schedule:
      return "schedule";
    case Source::tier:
      return "tier";
    case Source::override:
      return "override";
    case Source::external:
      return "external";
    case Source::adjustment:
      return "adjustment";
    case Source::caller:
      break;
  }
  return "caller";
}

// The bucket of a limit's rate.
struct RateCharge {
  std::string_view key;
  Limit limit = Limit::per_second(1);
  Time since = Time::max();  // the latest instant at which its limit may have changed (gcra::settle); max: now
  Lease lease{};             // on a store that servers share; none if the limit also has a quota
  Source source = Source::limit;

  // Whether tokens of this bucket may be leased: all leases together must be smaller than the burst. A limit too small
  // for that (from an override or an adjustment) is charged without leases. The product cannot overflow: the
  // configuration rejects a lease that is not smaller than the burst of its own limit.
  constexpr bool has_lease() const noexcept { return lease.tokens > 0 && lease.tokens * lease.servers < limit.burst(); }
  // The limit that a shared store decides with: the burst less all tokens that may be leased.
  constexpr Limit shared_limit() const noexcept {
    return has_lease() ? limit.less(lease.tokens * lease.servers) : limit;
  }
};

// The bucket of a limit's quota.
struct QuotaCharge {
  std::string_view key;
  Quota quota;
  Source source = Source::limit;
};

// A limit's rate and its quota are two buckets with separate keys in the store; both are charged or neither is. Views
// must outlive the question that the charge belongs to.
struct Charge {
  std::string_view limit_name;
  std::optional<RateCharge> rate{};  // a charge has a rate, a quota or both
  std::optional<QuotaCharge> quota{};
  Count cost = 1;
  bool shadow = false;  // decided and charged on its own, but never denies
  // Denies only if all alternatives of the question deny. Otherwise the request is charged to those with enough tokens.
  bool alternative = false;
  bool peeks = false;  // decides whether the cost fits, but takes nothing
  FailurePolicy on_failure = FailurePolicy::pass_through;
  int failure_code = 0;  // status code for fail_closed, if the protocol has such codes; 0: the server's

  constexpr Role role() const noexcept {
    if (shadow) return Role::shadow;
    return alternative ? Role::alternative : Role::enforces;
  }
  constexpr std::size_t buckets() const noexcept { return (rate ? 1u : 0u) + (quota ? 1u : 0u); }
};

}  // namespace weir
