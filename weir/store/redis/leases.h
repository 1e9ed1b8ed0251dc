// The leases of this server, and which buckets are hot enough for one. Shared by all loops; does not talk to Redis.
//
// A lease is a number of tokens that the server has spent from a shared bucket at once, to give to its own requests
// without asking Redis. The shared bucket is smaller than the limit by all tokens that may be leased, so no window
// exceeds the limit whatever happens to them; docs/decisions/0016 has the proof. The proof relies on this class for one
// thing: at any time the server spends from at most one lease of a bucket, and only while Redis counts that lease.
// Therefore:
//   - a lease is spent for less than kLeaseLife after its question was sent, while Redis counts it for kLeasePlace,
//     which is longer and starts later;
//   - asking for the next lease ends the current one;
//   - a grant that does not answer the latest question is not spent.
//
// Thread safety: every function may be called from any thread at any time. The table is divided into sets of a few
// buckets; each set has a lock that is held for a few instructions.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/decision.h"

namespace weir::redis {

inline constexpr Duration kLeaseLife = std::chrono::milliseconds{100};
// 1 ms less than kLeaseLife: each loop reads the clock on its own, about every 100 µs.
inline constexpr Duration kLeaseSpent = kLeaseLife - std::chrono::milliseconds{1};
// How long Redis counts a lease that is not returned: longer than kLeaseLife on any plausibly accurate clock.
inline constexpr Duration kLeasePlace = std::chrono::milliseconds{250};
// A bucket that is requested this often within kLeaseLife is hot.
inline constexpr Count kHotAsks = 10;

class Leases {
 public:
  struct Options {
    std::string holder;  // letters and digits; unique to this server
    HashKey key;         // secret
    std::size_t buckets_max = bounds::leases_max;
  };
  explicit Leases(Options options);

  using Bucket = std::uint64_t;  // a bucket's name, hashed
  Bucket bucket(std::string_view key) const noexcept { return std::max<Bucket>(siphash13(options_.key, key), 1); }
  const std::string& holder() const noexcept { return options_.holder; }

  // The numbers that Redis decides with, and the size of the lease.
  struct Terms {
    Limit limit = Limit::per_second(1);
    Lease lease;
    friend constexpr bool operator==(const Terms&, const Terms&) = default;
  };

  enum class Way : unsigned char {
    leased,  // allowed from the current lease; `decision` is the answer
    alone,   // ask Redis, for this request only
    gather,  // ask Redis, for all such requests of this turn at once
  };
  struct Unspent {
    Count tokens = 0;
    std::uint64_t serial = 0;
  };
  struct Answer {
    Way way = Way::alone;
    Decision decision;
    Count want = 0;            // with gather: tokens to lease as well; 0: none
    std::uint64_t serial = 0;  // of the wanted lease
    Unspent unspent;           // of the previous lease, to be returned first
  };
  // Handles a request for `cost` tokens. `again`: the request was counted before.
  Answer spend(Bucket bucket, const Terms& terms, Count cost, Time now, bool again = false);

  // The same, from the current lease only. Returns nullopt, and counts nothing, if the lease does not suffice.
  std::optional<Decision> spend_leased(Bucket bucket, const Terms& terms, Count cost, Time now);

  // Redis granted `tokens` for lease `serial`; the question was sent at `sent`, and `left` is the bucket's state
  // afterwards. Returns true if requests can now spend them until `sent` + kLeaseSpent; call end() then. False: too
  // late, return them.
  bool granted(Bucket bucket, std::uint64_t serial, Count tokens, const Decision& left, Time sent, Time now);
  // Redis granted no lease: do not ask for one again before `until`, because the bucket denied or enough other servers
  // have one. Also called if the outcome is unknown.
  void refused(Bucket bucket, std::uint64_t serial, Time until);
  // Ends the lease: nothing more is spent from it. Returns the tokens to give back.
  Count end(Bucket bucket, std::uint64_t serial);

 private:
  static constexpr std::size_t kSet = 16;

  struct Entry {
    Bucket bucket = 0;  // 0: free
    Terms terms;
    Time since{};  // when the current counting period began
    Count asks = 0, asks_before = 0;
    Count used = 0, used_before = 0;
    std::uint64_t asking = 0;  // serial of the question in flight; 0: none
    Time asking_until{};
    Time rests_until{};  // do not ask for a lease before this
    Count rest = 0;      // of the current lease
    std::uint64_t serial = 0;
    Time until{};
    Decision left;  // the bucket without the lease's tokens
  };
  struct Set {
    std::mutex mutex;
    std::array<Entry, kSet> entries;
  };

  Set& set_of(Bucket bucket) noexcept { return sets_[bucket % sets_.size()]; }
  static Entry* find(Set& set, Bucket bucket) noexcept;
  static Entry* find_or_make(Set& set, Bucket bucket, Time now) noexcept;
  static void count(Entry& entry, Count cost, Time now) noexcept;
  static Decision take(Entry& entry, Count cost) noexcept;

  Options options_;
  std::vector<Set> sets_;
  std::atomic<std::uint64_t> next_serial_{1};
};

}  // namespace weir::redis
