// Counts the denials of each client and has the keeper block those that meet `access.block` of the policy, or `block`
// of a limit. For `access.block` a client is whom the limit counts: an address, an API key, or an id of the limit.
// `block` of a limit counts, and blocks, an id of that limit.
//
// A denial is one request that an enforcing limit denied for now, decided with the store: shadow denials, degraded
// answers and costs that can never pass do not count. The count slides in eighths of `within`: it holds
// the denials of the last seven to eight eighths, so that nobody is blocked for fewer than `after` in that time. With
// `times` a client is blocked too when it asked for more than so many times what its limit gives in that time: what it
// was denied and what the limit gave at most, taken together.
//
// The table is fixed: when all places for a client's hash are taken, the one denied longest ago is forgotten, and
// counted if its time was not over.
//
// Thread safety: all of it. Loops meet only where clients share a stripe, and only on denials.
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

// The log line of an automatic block: "client blocked: client=ip:203.0.113.9 limit=per-ip denials=100 within=1m
// for=10m". `denials` is what `rule` counted, the last of them `label`'s.
std::string block_line(const Label& label, std::string_view hash_key, std::int64_t denials, const BlockRule& rule);

class DenialWatch {
 public:
  // The keeper must outlive it.
  explicit DenialWatch(KnownKeeper& keeper);

  // From any loop. REQUIRES: a verdict that denied, made under this policy.
  void denied(const Policy& policy, const Answer& answer);

  // Clients whose denials were forgotten early, for want of room.
  std::uint64_t forgotten() const noexcept { return forgotten_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kParts = 8;
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kStripes = 64;
  static constexpr std::size_t kSets = bounds::denial_counters_max / kStripes / kWays;

  struct Slot {
    std::uint64_t hash = 0;                      // 0: free
    Time first{};                                // of its first denial, where part 0 begins
    Duration part{};                             // how long a part is
    std::int64_t newest = 0;                     // the part of its last denial
    std::array<std::uint32_t, kParts> counts{};  // of the parts up to the newest, by number modulo kParts

    Time end() const noexcept { return first + part * (newest + static_cast<std::int64_t>(kParts)); }
  };
  struct Stripe {
    std::mutex mutex;
    std::vector<Slot> slots;  // made when first needed
  };

  // One denial under one rule: blocks `entry` if the rule is met. `interval`: of the rate that denied; zero: a quota
  // did.
  void count(const BucketName& name, std::uint64_t salt, const BlockRule& rule, const Label& label, Duration interval,
             const Answer& answer, AccessEntry entry);
  // How many denials this one makes, and whether the rule is met; then the count begins anew.
  bool count(std::uint64_t hash, const BlockRule& rule, Duration interval, Time now, std::int64_t& total);
  Slot& place(Stripe& stripe, std::uint64_t hash, Time now);
  static std::int64_t add(Slot& slot, Duration part, Time now) noexcept;
  static bool met(const BlockRule& rule, Duration interval, std::int64_t total) noexcept;

  KnownKeeper& keeper_;
  BucketNameHash hash_;
  std::array<Stripe, kStripes> stripes_;
  std::atomic<std::uint64_t> forgotten_{0};
};

}  // namespace weir
