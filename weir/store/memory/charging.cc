#include "weir/store/memory/charging.h"

#include <algorithm>
#include <array>
#include <limits>

#include "weir/base/assert.h"
#include "weir/store/conclude.h"

namespace weir {
namespace {

// One bucket of the request, its cost summed over the charges that name it.
struct Entry {
  const Charge* charge = nullptr;
  std::uint64_t h = 0;
  Count cost = 0;
  bool enforces = false;  // one of its charges does
  bool first = true;      // the first charge that names this bucket; the others share its decision
  std::size_t shares = 0;
};

using Entries = std::array<Entry, bounds::charges_max>;

bool is_quota(const Entry& entry) {
  return entry.charge->key.kind == Kind::quota;
}

Decision spend(Table& table, const Entry& entry, Now now, const Clock& clock) {
  const Charge& charge = *entry.charge;
  if (is_quota(entry)) return table.spend(entry.h, charge.key, charge.quota, entry.cost, now);
  return table.spend(entry.h, charge.key, charge.limit, entry.cost, now.time, {charge.since, &clock});
}

Decision peek(Table& table, const Entry& entry, Now now, const Clock& clock, bool settles = true) {
  const Charge& charge = *entry.charge;
  if (is_quota(entry)) return table.peek(entry.h, charge.quota, entry.cost, now);
  return table.peek(entry.h, charge.limit, entry.cost, now.time, {charge.since, &clock, settles});
}

Decision refund(Table& table, const Entry& entry, Now now, const Clock& clock) {
  const Charge& charge = *entry.charge;
  if (is_quota(entry)) return table.refund(entry.h, charge.quota, entry.cost, now);
  return table.refund(entry.h, charge.limit, entry.cost, now.time, {charge.since, &clock});
}

void undo(Table& table, const Entry& entry, const Decision& spent, Now spent_at, const Clock& clock) {
  const Charge& charge = *entry.charge;
  if (is_quota(entry)) {
    table.undo(entry.h, entry.cost, spent_at.wall + spent.reset_after);
  } else {
    table.undo(entry.h, charge.limit, entry.cost, spent_at.time, clock);
  }
}

// Costs are never negative; a sum that does not fit is more than any burst.
Count sum(Count a, Count b) {
  return a > std::numeric_limits<Count>::max() - b ? std::numeric_limits<Count>::max() : a + b;
}

void gather(const Table& table, std::span<const Charge> charges, Entries& entries) {
  for (std::size_t i = 0; i < charges.size(); ++i) {
    Entry& entry = entries[i];
    entry = {&charges[i], table.hash(charges[i].key), charges[i].cost, !charges[i].shadow, true, i};
    for (std::size_t j = 0; j < i && entry.first; ++j) {
      if (!entries[j].first || entries[j].h != entry.h) continue;
      entry.first = false;
      entry.shares = j;
      entries[j].cost = sum(entries[j].cost, entry.cost);
      entries[j].enforces |= entry.enforces;
    }
  }
}

using Found = std::array<Decision, bounds::charges_max>;

// Spends every entry of [begin, end) that enforces, in the order of the hashes; false, and nothing stays spent, if a
// race was lost.
bool spend_all(Table& table, std::span<const Entry> entries, std::size_t begin, std::size_t end, Now now,
               const Clock& clock, Found& found) {
  std::array<std::size_t, bounds::charges_max> order{};
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (entries[i].first && entries[i].enforces) order[count++] = i;
  }
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
            [&](std::size_t a, std::size_t b) { return entries[a].h < entries[b].h; });
  for (std::size_t n = 0; n < count; ++n) {
    found[order[n]] = spend(table, entries[order[n]], now, clock);
    if (found[order[n]].allowed) continue;
    for (std::size_t spent = 0; spent < n; ++spent) {
      undo(table, entries[order[spent]], found[order[spent]], now, clock);
      found[order[spent]] = peek(table, entries[order[spent]], now, clock);
    }
    return false;
  }
  return true;
}

// All of [begin, end) or none; a shadow is charged in its own right. False if one that enforces denied.
bool spend_together(Table& table, std::span<const Entry> entries, std::size_t begin, std::size_t end, Now now,
                    const Clock& clock, Found& found) {
  bool allowed = true;
  for (std::size_t i = begin; i < end; ++i) {
    if (!entries[i].first || !entries[i].enforces) continue;
    // Alone there is nothing to look at first: one that is denied takes nothing.
    if (end - begin == 1) break;
    found[i] = peek(table, entries[i], now, clock);
    allowed &= found[i].allowed;
  }
  allowed = allowed && spend_all(table, entries, begin, end, now, clock, found);
  for (std::size_t i = begin; i < end; ++i) {
    if (entries[i].first && !entries[i].enforces) found[i] = spend(table, entries[i], now, clock);
  }
  return allowed;
}

Verdict conclude(std::span<const Entry> entries, const Decisions& decisions) {
  return weir::conclude(decisions, [&](std::size_t i) { return !entries[i].charge->shadow; });
}

// One limit's bucket and quota share a key and are charged together even in order.
std::size_t end_of_limit(std::span<const Entry> entries, std::size_t begin) {
  std::size_t end = begin + 1;
  while (end < entries.size() && entries[end].charge->key.text == entries[begin].charge->key.text) ++end;
  return end;
}

Verdict spend(Table& table, std::span<const Entry> entries, Order order, Now now, const Clock& clock) {
  Found found;
  std::size_t asked = 0;
  for (bool allowed = true; allowed && asked < entries.size();) {
    const std::size_t end = order == Order::together ? entries.size() : end_of_limit(entries, asked);
    allowed = spend_together(table, entries, asked, end, now, clock, found);
    asked = end;
  }
  Decisions decisions;
  for (std::size_t i = 0; i < asked; ++i) decisions.push_back(found[entries[i].shares]);
  return conclude(entries, decisions);
}

// What most requests are: no order, nobody to agree with.
Verdict spend_one(Table& table, const Charge& charge, Now now, const Clock& clock) {
  const Entry entry{&charge, table.hash(charge.key), charge.cost, !charge.shadow, true, 0};
  Verdict verdict;
  verdict.all.push_back(spend(table, entry, now, clock));
  verdict.allowed = charge.shadow || verdict.all[0].allowed;
  return verdict;
}

}  // namespace

Verdict charge(Table& table, std::span<const Charge> charges, Mode mode, Order order, Now now,
               const Clock& clock) noexcept {
  WEIR_ASSERT(charges.size() <= bounds::charges_max);
  if (charges.size() == 1 && mode == Mode::spend) return spend_one(table, charges[0], now, clock);
  Entries all;
  gather(table, charges, all);
  const std::span<const Entry> entries(all.data(), charges.size());
  if (mode == Mode::spend) return spend(table, entries, order, now, clock);
  Decisions decisions;
  std::size_t forgotten = 0;
  for (const Entry& entry : entries) {
    if (!entry.first) {
      decisions.push_back(decisions[entry.shares]);
      continue;
    }
    if (mode == Mode::reset) forgotten += table.reset(entry.h, entry.charge->key.kind, now) ? 1 : 0;
    decisions.push_back(mode == Mode::refund ? refund(table, entry, now, clock)
                                             : peek(table, entry, now, clock, mode != Mode::look));
  }
  Verdict verdict = conclude(entries, decisions);
  verdict.forgotten = forgotten;
  return verdict;
}

void prefetch(const Table& table, std::span<const Charge> charges) noexcept {
  for (const Charge& charge : charges) table.prefetch_line(table.hash(charge.key));
}

}  // namespace weir
