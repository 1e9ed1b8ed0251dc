// One request against the table: every charge decided, and taken all together or one after another.
#pragma once

#include <span>

#include "weir/base/clock.h"
#include "weir/core/charge.h"
#include "weir/core/query.h"
#include "weir/core/verdict.h"
#include "weir/store/memory/table.h"

namespace weir {

// `now` is the request's one reading of the clock. `clock` is read again only to undo a spend by its age: when another
// request took the last token of one bucket after this one had spent from another.
//
// together: looks at every bucket first and writes nothing; if one that enforces denies, that is the answer. Otherwise
// it spends in the order of the hashes, so that two requests never abort each other; a lost race undoes what was spent.
// in_order: spends one after another and stops at the first denial; buckets behind it are untouched.
// A limit's bucket and quota, next to each other under one key, are one in either order.
// A shadow charge is taken in its own right, whatever the others say, if its own bucket allows it; it never denies.
// The same bucket twice is charged once with the summed cost.
//
// REQUIRES: charges.size() <= bounds::charges_max, costs >= 0.
Verdict charge(Table& table, std::span<const Charge> charges, Mode mode, Order order, Now now,
               const Clock& clock) noexcept;

// Asks the memory for the lines of many charges at once.
void prefetch(const Table& table, std::span<const Charge> charges) noexcept;

}  // namespace weir
