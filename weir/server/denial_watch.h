// Counts each client's denials and has the keeper block clients that meet `access.block` of the policy or `block` of a
// limit. For `access.block` the client is what the limit counts: an address, an API key, or an id of the limit. `block`
// of a limit counts and blocks an id of that limit.
//
// A denial is one request that an enforcing limit denied temporarily, decided with the store: shadow denials, degraded
// answers and costs that can never pass do not count. The count slides in eighths of `within`: it covers the last seven
// to eight eighths, so that no client is blocked for fewer than `after` denials in that time. With `times`, a client is
// also blocked when it requested more than `times` what its limit provides in that time: denied requests plus the most
// the limit could have allowed.
//
// The table has a fixed size: when all counters for a client's hash are in use, the one that was denied longest ago is
// evicted, and the eviction is counted if its time was not over.
//
// Thread-safe. Loops contend only on denials of clients in the same stripe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/core/answer.h"
#include "weir/known/known_keeper.h"
#include "weir/policy/policy.h"

namespace weir {

// Returns the log line of an automatic block: "client blocked: client=ip:203.0.113.9 limit=per-ip denials=100 within=1m
// for=10m". `denials` is the count for `rule`; `label` is the last denial.
std::string block_line(const Label& label, std::string_view hash_key, std::int64_t denials, const BlockRule& rule);

class DenialWatch {
 public:
  // The keeper must outlive it.
  explicit DenialWatch(KnownKeeper& keeper);

  // Counts a denial. Called on any loop. REQUIRES: a verdict that denied, made under this policy.
  void denied(const Policy& policy, const Answer& answer);

  // Counters that were evicted early because the table was full.
  std::uint64_t forgotten() const noexcept { return forgotten_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kSlices = 8;
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kStripes = 64;
  static constexpr std::size_t kSets = bounds::denial_counters_max / kStripes / kWays;

  struct DenialCounter {
    std::uint64_t hash = 0;                       // 0: free
    Time first{};                                 // of its first denial, where slice 0 starts
    Duration slice{};                             // the length of a slice
    std::int64_t newest = 0;                      // the slice of its last denial
    std::array<std::uint32_t, kSlices> counts{};  // of the slices up to the newest, by number modulo kSlices

    Time end() const noexcept { return first + slice * (newest + static_cast<std::int64_t>(kSlices)); }
  };
  struct Stripe {
    std::mutex mutex;
    std::vector<DenialCounter> counters;  // allocated on first use
  };

  // Counts one denial under one rule and blocks `entry` if the rule is met. `interval` is that of the rate that denied;
  // zero: a quota did.
  void count(const BucketName& name, std::uint64_t salt, const BlockRule& rule, const Label& label, Duration interval,
             const Answer& answer, AccessEntry entry);
  // Returns whether the rule is met, and resets the counter then. `total` is the number of denials, including this one.
  bool count(std::uint64_t hash, const BlockRule& rule, Duration interval, Time now, std::int64_t& total);
  DenialCounter& find_or_evict(Stripe& stripe, std::uint64_t hash, Time now);
  static std::int64_t add(DenialCounter& counter, Duration slice, Time now) noexcept;
  static bool is_met(const BlockRule& rule, Duration interval, std::int64_t total) noexcept;

  KnownKeeper& keeper_;
  BucketNameHash hash_;
  std::array<Stripe, kStripes> stripes_;
  std::atomic<std::uint64_t> forgotten_{0};
};

}  // namespace weir
