// What a request gets while the store cannot be asked: its limits' failure policies, in one place.
//
//   passThrough       decided as if every bucket were full, nothing is kept; the verdict is marked degraded
//   failClosed        an Error: the protocol says store_unavailable with the limit's failure_code
//   inMemoryFallback  charged in a table of this server, each number divided among `share` servers
//
// Limits of one request may differ. One that enforces and fails closed refuses the whole request, and nothing is
// charged. Otherwise those with a table of their own are charged there, together or in order as asked, and those that
// pass through deny only what no bucket could ever give: a cost beyond the burst. A shadow limit never refuses.
// A reset is not a request: it is done in the local table, and still an Error, since the store has not forgotten.
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

// Requests that got a policy instead of the store, for all loops. Any thread may count and read; relaxed, because
// nothing is published through it.
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
  // Loops share the table and the counts, which outlive them, as the clock does.
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

// The limit's numbers for one of `share` servers: the interval times share, the burst divided by it, but at least 1.
Limit divide(const Limit& limit, Count share);

}  // namespace weir
