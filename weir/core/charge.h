// One bucket to be charged, everything decided but the state.
#pragma once

#include <string_view>

#include "weir/base/time.h"
#include "weir/core/key.h"
#include "weir/core/limit.h"
#include "weir/core/quota.h"

namespace weir {

// What a request gets when the store cannot be asked.
enum class FailurePolicy : unsigned char { pass_through, fail_closed, in_memory_fallback };

// As the configuration spells it.
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

// A server may take this many tokens of a shared bucket at once, and as many servers may do so (store/redis).
struct Lease {
  Count tokens = 0;  // 0: none
  Count servers = 0;

  friend constexpr bool operator==(const Lease&, const Lease&) = default;
};

// Views must outlive the question the charge belongs to.
struct Charge {
  Key key;
  std::string_view limit_name;
  Limit limit = Limit::per_second(1);  // of a bucket
  Time since = Time::max();            // the latest instant its numbers may have changed (gcra::settle); max: now
  Quota quota;                         // of a quota
  Lease lease;                         // of a bucket on a store that servers share
  Count cost = 1;
  bool shadow = false;  // decided and charged in its own right, but never denies
  FailurePolicy on_failure = FailurePolicy::pass_through;
  int failure_code = 0;  // what fail_closed answers where the protocol has such codes; 0: the server's

  // Whether tokens of this bucket may be leased: all leases together are less than the bucket holds. Numbers that leave
  // no room for them (an override, an adjustment) are counted without.
  constexpr bool has_lease() const noexcept {
    return lease.tokens > 0 && key.kind == Kind::bucket && lease.tokens <= (limit.burst() - 1) / lease.servers;
  }
  // What a shared store decides with: the bucket without what may be out on lease.
  constexpr Limit shared_limit() const noexcept {
    return has_lease() ? limit.less(lease.tokens * lease.servers) : limit;
  }
};

}  // namespace weir
