// Charges one request to the table, together or in order (algorithm/charging.h).
#pragma once

#include <cstdint>
#include <span>

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
  // Both must outlive it.
  TableBuckets(Table& table, Now now, const Clock& clock) noexcept : table_(table), now_(now), clock_(clock) {}

  std::uint64_t hash(const Key& key) const noexcept;
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
};

// REQUIRES: charges.size() <= bounds::charges_max, costs >= 0.
Verdict charge(Table& table, std::span<const Charge> charges, Mode mode, Order order, Now now,
               const Clock& clock) noexcept;

// Prefetches the lines of many charges at once.
void prefetch(const Table& table, std::span<const Charge> charges) noexcept;

}  // namespace weir
