// Charges one request to the table, together or in order (algorithm/charging.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weir/algorithm/charging.h"
#include "weir/base/clock.h"
#include "weir/core/charge.h"
#include "weir/core/query.h"
#include "weir/core/verdict.h"
#include "weir/store/memory/table.h"

namespace weir {

// The table's buckets at one reading of the clock, for algorithm/charging.h. `clock` is read again only to settle a
// bucket, or to undo a spend by its age: when another request took the last token of one bucket after this request had
// spent from another.
class TableBuckets {
 public:
  // All must outlive it. `hashes`: of the charges' keys, if prefetch() has computed them.
  TableBuckets(Table& table, Now now, const Clock& clock, std::span<const std::uint64_t> hashes = {}) noexcept
      : table_(table), now_(now), clock_(clock), hashes_(hashes) {}

  // REQUIRES: asked once for each key, in the order of the charges.
  std::uint64_t hash(const Key& key) noexcept;
  Decision spend(const ChargedBucket& bucket) const noexcept;
  Decision peek(const ChargedBucket& bucket) const noexcept;
  Decision look(const ChargedBucket& bucket) const noexcept;
  Decision refund(const ChargedBucket& bucket) const noexcept;
  bool reset(const ChargedBucket& bucket) const noexcept;
  void undo(const ChargedBucket& bucket, const Decision& spent) const noexcept;

 private:
  Decision decide(const ChargedBucket& bucket, bool settles) const noexcept;

  Table& table_;
  const Now now_;
  const Clock& clock_;
  std::span<const std::uint64_t> hashes_;  // of the keys that hash() has not been asked for
};

// REQUIRES: charges.size() <= bounds::charges_max, costs >= 0.
Verdict charge(Table& table, std::span<const Charge> charges, Mode mode, Order order, Now now,
               const Clock& clock) noexcept;

// Prefetches the lines of many charges at once. Appends the hashes of their keys: a rate's before its quota's.
void prefetch(const Table& table, std::span<const Charge> charges, std::vector<std::uint64_t>& hashes);

}  // namespace weir
