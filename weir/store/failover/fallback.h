// Decides requests while the store is unavailable, by the failure policies of their limits.
//
//   passThrough       decided as if every bucket were full; nothing is stored; the verdict is marked degraded
//   failClosed        an Error: the protocol answers store_unavailable with the limit's failure_code
//   inMemoryFallback  charged in a table local to this server, with the limit divided among `share` servers
//
// The limits of one request may have different policies. If an enforcing limit fails closed, the whole request is
// refused and nothing is charged. Otherwise limits with inMemoryFallback are charged in the local table, together or in
// order as the question says, and limits with passThrough deny only a cost above the burst, which no bucket could ever
// cover. A shadow limit never refuses.
// A reset is applied to the local table but still returns an Error, because the store has not forgotten the bucket.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/core/charge.h"
#include "weir/core/verdict.h"
#include "weir/store/memory/table.h"
#include "weir/store/store.h"

namespace weir {

// Counts requests that a failure policy decided instead of the store, over all loops. Any thread may add and read.
// Relaxed, because nothing is published through the counters.
class FallbackCounts {
 public:
  void add(FailurePolicy policy) noexcept {
    counts_[static_cast<std::size_t>(policy)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t of(FailurePolicy policy) const noexcept {
    return counts_[static_cast<std::size_t>(policy)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, 3> counts_{};
};

class Fallback {
 public:
  // All loops share the table and the counts. These and the clock must outlive every loop.
  // REQUIRES: 1 <= share <= bounds::share_max.
  Fallback(Table& table, Count share, FallbackCounts& counts, const Clock& clock) noexcept;

  Result<Verdict> decide(const Question& question, Now now);

 private:
  Verdict decide_open(const Question& question, Now now);

  Table& table_;
  const Count share_;
  FallbackCounts& counts_;
  const Clock& clock_;
};

// Returns one server's part of the limit: the interval times `share`, and the burst divided by `share` but at least 1.
Limit divide(const Limit& limit, Count share);

}  // namespace weir
