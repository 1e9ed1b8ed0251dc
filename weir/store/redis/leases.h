// Leases of this server, and which buckets are hot enough for one: what all loops share, without Redis.
//
// A lease is tokens that the server has taken of a shared bucket as one spend, to give to its own requests without
// asking. The shared bucket is smaller than the limit by all tokens that may be out on lease, so whatever happens to
// them no window sees more than the limit; docs/decisions/0016 has the argument. It rests on this class for one thing:
// at any time the server spends of at most one lease of a bucket, and only while Redis counts that lease. Hence
//   - a lease is spent for less than kLeaseLife, from the moment its question was sent, and Redis keeps its place for
//     kLeasePlace from a later moment, which is longer;
//   - a question for the next lease ends the one at hand;
//   - a grant that is not the answer to the last question is not spent.
//
// Thread safety: every function may be called from any thread at any time. The table is in sets of a few buckets, each
// with its lock, held for some instructions.
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
// Loops read the clock every 100 µs or so, and each reads it for itself.
inline constexpr Duration kLeaseSpent = kLeaseLife - std::chrono::milliseconds{1};
// How long Redis counts a lease that is not returned: longer than kLeaseLife on any plausibly accurate clock.
inline constexpr Duration kLeasePlace = std::chrono::milliseconds{250};
// A bucket that was asked for this often within kLeaseLife is hot.
inline constexpr Count kHotAsks = 10;

class Leases {
 public:
  struct Options {
    std::string holder;  // letters and digits; no other server has the same
    HashKey key;         // secret
    std::size_t buckets_max = bounds::leases_max;
  };
  explicit Leases(Options options);

  using Bucket = std::uint64_t;  // a bucket's name, hashed
  Bucket bucket(std::string_view key) const noexcept { return std::max<Bucket>(siphash13(options_.key, key), 1); }
  const std::string& holder() const noexcept { return options_.holder; }

  // What is counted: the numbers that Redis decides with, and the lease.
  struct Terms {
    Limit limit = Limit::per_second(1);
    Lease lease;
    friend constexpr bool operator==(const Terms&, const Terms&) = default;
  };

  enum class Way : unsigned char {
    leased,  // passes, from the lease at hand; `decision` is the answer
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
    Count want = 0;            // of gather: tokens to lease beside; 0: none
    std::uint64_t serial = 0;  // of the lease wanted
    Unspent unspent;           // of the lease before it, to be returned first
  };
  // A request for `cost` tokens. `again`: it was counted before.
  Answer spend(Bucket bucket, const Terms& terms, Count cost, Time now, bool again = false);

  // The same, from the current lease only. Returns nullopt, and counts nothing, if the lease does not suffice.
  std::optional<Decision> spend_leased(Bucket bucket, const Terms& terms, Count cost, Time now);

  // Redis answered the question for lease `serial`, sent at `sent`: so many tokens, and how the bucket was left.
  // True: requests are given of them until `sent` + kLeaseSpent; then end() it. False: they came too late, return them.
  bool granted(Bucket bucket, std::uint64_t serial, Count tokens, const Decision& left, Time sent, Time now);
  // There is no such lease: the bucket denied or enough others have one, so that asking again is of no use until
  // `until`; or nobody knows.
  void refused(Bucket bucket, std::uint64_t serial, Time until);
  // Ends the lease: nothing more is spent from it. Returns the tokens to give back.
  Count end(Bucket bucket, std::uint64_t serial);

 private:
  static constexpr std::size_t kSet = 16;

  struct Entry {
    Bucket bucket = 0;  // 0: free
    Terms terms;
    Time since{};  // when counting began
    Count asks = 0, asks_before = 0;
    Count used = 0, used_before = 0;
    std::uint64_t asking = 0;  // serial of the question on its way; 0: none
    Time asking_until{};
    Time rests_until{};  // there is no use in asking for a lease
    Count rest = 0;      // of the lease at hand
    std::uint64_t serial = 0;
    Time until{};
    Decision left;  // the bucket without any of the lease
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
