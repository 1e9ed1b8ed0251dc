// The request path. Opening a table is in table_open.cc; operations under a group's lock are in table_rebuild.cc.
#include "weir/store/memory/table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/gcra.h"

namespace weir {
namespace {

Time tat_of(State state) {
  return Time{Duration{static_cast<std::int64_t>(state)}};
}
// A TAT before the start of the timeline is a full bucket, like any other in the past. 0 is reserved for evicted
// buckets.
State state_of(Time tat) {
  return static_cast<State>(std::max<std::int64_t>(tat.time_since_epoch().count(), 1));
}

// Copies field by field. A copy of the whole struct would build the decision on the stack and read it back before its
// parts have arrived there, which stalls.
void assign(Decision& to, const Decision& from) {
  to.allowed = from.allowed;
  to.burst = from.burst;
  to.remaining = from.remaining;
  to.retry_after = from.retry_after;
  to.reset_after = from.reset_after;
}

// Returns which slots of the line have this fingerprint, one bit per slot. There is no branch per slot: which slot
// matches is unpredictable, and a misprediction would keep the processor from running ahead while the line is loaded.
unsigned matching(const Slot* slots, std::uint64_t fingerprint) {
  const auto at = [&](unsigned i) {
    return unsigned{slots[i].fingerprint.load(std::memory_order_acquire) == fingerprint} << i;
  };
  static_assert(kSlotsPerLine == 4);
  return at(0) | at(1) | at(2) | at(3);
}

// Returns the TAT to use for this state (gcra::settle). The clock is read after the state was loaded, so a spend with a
// newer reading than `now` is not mistaken for a change of the limit. A settled TAT is never emptier than empty at
// `now`; otherwise the reported wait would be too short.
Time counted(const Limit& limit, State state, Time now, const Table::Settling& settling) {
  const Time tat = tat_of(state);
  if (tat - now <= limit.window() || settling.clock == nullptr) [[likely]]
    return tat;
  return gcra::settle(limit, tat, std::min(settling.since, now), settling.clock->time());
}

// 0 marks a slot that was never used.
std::uint64_t never_zero(std::uint64_t h) {
  return h != 0 ? h : 1;
}

// Prefetches the home line and the next one. Nearly all keys that are not in the home line are in the next, and loading
// that only after the home line has arrived would mean waiting twice.
void prefetch(const Slot* line) {
  __builtin_prefetch(line, 1);
  __builtin_prefetch(line + kSlotsPerLine, 1);
}

// At two lines each, about as many as a processor can load at once.
constexpr std::size_t kAtOnce = 16;

}  // namespace

std::uint64_t Table::hash(const Key& key) const noexcept {
  HashKey seed = header_->seed;
  // A limit's bucket and its quota may have the same text but must not share a slot.
  if (key.kind == Kind::quota) seed.k1 = ~seed.k1;
  return never_zero(siphash13(seed, key.text));
}

void Table::hash(std::span<Spend> asked) const noexcept {
  std::array<std::string_view, kAtOnce> texts;
  std::array<std::uint64_t, kAtOnce> hashes;
  for (std::size_t done = 0; done < asked.size(); done += kAtOnce) {
    const std::span<Spend> part = asked.subspan(done, std::min(kAtOnce, asked.size() - done));
    for (std::size_t i = 0; i < part.size(); ++i) texts[i] = part[i].key;
    siphash13(header_->seed, std::span(texts).first(part.size()), hashes.data());
    for (std::size_t i = 0; i < part.size(); ++i) {
      part[i].h = never_zero(hashes[i]);
      prefetch_group(part[i].h);
    }
  }
}

std::size_t Table::index_of(std::uint64_t h) const noexcept {
  return scale(h, groups_count_);
}

// Computed from the bits of h that did not select the group.
std::uint32_t Table::home(std::uint64_t h, Shape shape) const noexcept {
  return static_cast<std::uint32_t>(scale(h * groups_count_, shape.lines()));
}

Slot* Table::line(const Group& group, Shape shape, std::uint32_t number) const noexcept {
  // Relaxed is enough: the page was written before the shape that this reader acquired, and a later page can only cause
  // a miss.
  const Line page = group.page[shape.bank()][number >> shape.order()].load(std::memory_order_relaxed);
  const std::uint32_t within = number & ((1u << shape.order()) - 1);
  return reinterpret_cast<Slot*>(pages_.data() + (std::size_t{page} + within) * kLineBytes);
}

Table::Home Table::home_of(std::uint64_t h) const noexcept {
  const Group& group = groups_[index_of(h)];
  const Shape shape{group.shape.load(std::memory_order_acquire)};
  return {shape, line(group, shape, home(h, shape))};
}

Slot* Table::find(const Group& group, Shape shape, std::uint64_t h, std::uint32_t* slot_number) const noexcept {
  const std::uint32_t lines = shape.lines();
  std::uint32_t number = home(h, shape);
  for (std::uint32_t searched = 0; searched < lines; ++searched) {
    Slot* const slots = line(group, shape, number);
    if (const unsigned match = matching(slots, h); match != 0) {
      const auto i = static_cast<unsigned>(std::countr_zero(match));
      if (slot_number != nullptr) *slot_number = number * kSlotsPerLine + i;
      return &slots[i];
    }
    if (matching(slots, 0) != 0) return nullptr;  // never used: h would have been inserted here
    if (++number == lines) number = 0;
  }
  return nullptr;
}

Slot* Table::find_locked(std::size_t index, std::uint64_t h) const noexcept {
  return find(groups_[index], Shape{groups_[index].shape.load(std::memory_order_relaxed)}, h);
}

// Another thread holds the group's lock and has finished when the lock is free.
void Table::wait(std::uint64_t h) noexcept {
  waits_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard until_free(sides_[index_of(h)].lock);
}

// Applies `step` to the bucket's state and retries until that succeeds. Returns false if there is no such bucket.
// `home` may be stale; then the first attempt fails.
template <class Step>
bool Table::change(std::uint64_t h, Home home, Now now, Step&& step) noexcept {
  const Group& group = groups_[index_of(h)];
  for (;; home = home_of(h)) {
    Slot* slot = nullptr;
    if (const unsigned match = matching(home.line, h); match != 0) [[likely]] {
      slot = &home.line[std::countr_zero(match)];
    } else {
      slot = find(group, home.shape, h);
    }
    if (slot == nullptr) {
      // A miss counts only if the record is still in use: the pages of an old record may contain another group's slots
      // by now.
      if (group.shape.load(std::memory_order_relaxed) != home.shape.bits) continue;
      return false;
    }
    std::uint64_t word = slot->word.load(std::memory_order_acquire);
    if (word == 0 || (word & kBusy) != 0) {
      wait(h);
      continue;
    }
    // Check that the word belongs to h. If the slot changed hands once since the fingerprint was found, the fingerprint
    // differs. If it changed hands twice, the version differs.
    if (slot->fingerprint.load(std::memory_order_acquire) != h ||
        group.shape.load(std::memory_order_relaxed) != home.shape.bits) {
      continue;
    }
    const State state = decode(word, h);
    if (state == 0) return false;  // evicted: insert() brings it back under the lock, where buckets are counted
    const Change change = step(state, now);
    if (change.write) {
      // Release: publishes the new state to readers. Acquire on failure: the next round uses the winner's state.
      if (slot->word.compare_exchange_strong(word, encode(change.state, h, kind_of(word)), std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
        return true;
      }
    } else if (slot->word.load(std::memory_order_acquire) == word) {
      return true;
    }
    lost_races_.fetch_add(1, std::memory_order_relaxed);
  }
}

template <class Step>
void Table::update(std::uint64_t h, Key key, Home home, Now now, Step&& step) noexcept {
  while (!change(h, home, now, step)) {
    if (insert(h, key, now, step)) return;
    home = home_of(h);
  }
}

// Returns false if the key turned out to exist.
template <class Step>
bool Table::insert(std::uint64_t h, Key key, Now now, Step& step) noexcept {
  raise_horizon(now);
  const std::size_t index = index_of(h);
  const std::lock_guard lock(sides_[index].lock);
  const Slot* const found = find_locked(index, h);
  if (found != nullptr && decode(found->word.load(std::memory_order_acquire), h) != 0) return false;
  // A forgotten bucket had its TAT before the horizon, so it was full at the horizon.
  const Now at{std::max(now.time, Time{Duration{header_->horizon.load(std::memory_order_relaxed)}}), now.wall};
  const Change change = step(State{0}, at);
  if (!change.write) return true;
  Slot* const slot = claim(index, h, at);
  remember_name(index, h, key);
  slot->fingerprint.store(h, std::memory_order_release);
  slot->word.store(encode(change.state, h, key.kind), std::memory_order_release);
  return true;
}

// Writes into the caller's decision. A local one would have to be copied, and would be read back before its parts have
// arrived in memory.
void Table::spend_at(Home home, std::uint64_t h, Key key, const Limit& limit, Count cost, Time now,
                     const Settling& settling, Decision& decision) noexcept {
  update(h, key, home, Now{now, Wall{}}, [&](State state, Now at) {
    const Time tat = counted(limit, state, at.time, settling);
    const Step step = gcra::spend(limit, tat, cost, at.time);
    assign(decision, step.decision);
    if (step.decision.allowed && cost != 0) return Change{state_of(step.tat), true};
    return Change{state_of(tat), tat != tat_of(state)};
  });
}

Decision Table::spend(std::uint64_t h, const Key& key, const Limit& limit, Count cost, Time now,
                      Settling settling) noexcept {
  Decision decision;
  spend_at(home_of(h), h, key, limit, cost, now, settling, decision);
  return decision;
}

void Table::spend_batch(std::span<const Spend> asked, Time now, Decision* out) noexcept {
  std::array<Home, kAtOnce> home;
  for (std::size_t done = 0; done < asked.size(); done += kAtOnce) {
    const std::span<const Spend> part = asked.subspan(done, std::min(kAtOnce, asked.size() - done));
    for (std::size_t i = 0; i < part.size(); ++i) {
      home[i] = home_of(part[i].h);
      prefetch(home[i].line);
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      spend_at(home[i], part[i].h, Key{part[i].key}, *part[i].limit, part[i].cost, now, part[i].settling,
               out[done + i]);
    }
  }
}

Decision Table::peek(std::uint64_t h, const Limit& limit, Count cost, Time now, Settling settling) noexcept {
  Decision decision = gcra::peek(limit, Time{}, cost, now);
  change(h, home_of(h), Now{now, Wall{}}, [&](State state, Now at) {
    const Time tat = counted(limit, state, at.time, settling);
    decision = gcra::peek(limit, tat, cost, at.time);
    return Change{state_of(tat), settling.writes && tat != tat_of(state)};
  });
  return decision;
}

Decision Table::refund(std::uint64_t h, const Limit& limit, Count cost, Time now, Settling settling) noexcept {
  Decision decision = gcra::refund(limit, Time{}, cost, now).decision;
  change(h, home_of(h), Now{now, Wall{}}, [&](State state, Now at) {
    const Time tat = counted(limit, state, at.time, settling);
    const Step step = gcra::refund(limit, tat, cost, at.time);
    decision = step.decision;
    // Leave a full bucket as it is: writing it would only delay forgetting it.
    const Time next = cost != 0 && tat > at.time ? step.tat : tat;
    return Change{state_of(next), next != tat_of(state)};
  });
  return decision;
}

Decision Table::spend(std::uint64_t h, const Key& key, const Quota& quota, Count cost, Now now) noexcept {
  Decision decision;
  update(h, key, home_of(h), now, [&](State state, Now at) {
    const QuotaStep step = quota::spend(quota, state, cost, at.wall);
    decision = step.decision;
    return Change{step.state, step.state != state};
  });
  return decision;
}

Decision Table::peek(std::uint64_t h, const Quota& quota, Count cost, Now now) noexcept {
  Decision decision = quota::peek(quota, 0, cost, now.wall);
  change(h, home_of(h), now, [&](State state, Now at) {
    decision = quota::peek(quota, state, cost, at.wall);
    return Change{state, false};
  });
  return decision;
}

Decision Table::refund(std::uint64_t h, const Quota& quota, Count cost, Now now) noexcept {
  Decision decision = quota::refund(quota, 0, cost, now.wall).decision;
  change(h, home_of(h), now, [&](State state, Now at) {
    const QuotaStep step = quota::refund(quota, state, cost, at.wall);
    decision = step.decision;
    return Change{step.state, step.state != state};
  });
  return decision;
}

bool Table::reset(std::uint64_t h, Kind kind, Now now) noexcept {
  bool was_there = false;
  change(h, home_of(h), now, [&](State state, Now at) {
    if (kind == Kind::quota) {
      const quota::Usage usage = quota::unpack(state);
      was_there = usage.used != 0 && quota::end_of(state) > at.wall;
      return Change{quota::pack({usage.end, 0}), was_there};
    }
    was_there = tat_of(state) > at.time;
    return Change{state_of(at.time), was_there};
  });
  return was_there;
}

void Table::undo(std::uint64_t h, const Limit& limit, Count cost, Time spent_at, const Clock& clock) noexcept {
  change(h, home_of(h), Now{}, [&](State state, Now) {
    // Read after the state was loaded, so that what the refill has returned since the spend is not returned again.
    const Time now = clock.now().time;
    return Change{state_of(gcra::undo(tat_of(state), limit.price(cost), spent_at, now)), true};
  });
}

void Table::undo(std::uint64_t h, const Quota& quota, Count cost, Wall window_end) noexcept {
  change(h, home_of(h), Now{}, [&](State state, Now) {
    const State undone = quota::undo(quota, state, cost, window_end);
    return Change{undone, undone != state};
  });
}

void Table::prefetch_group(std::uint64_t h) const noexcept {
  __builtin_prefetch(&groups_[index_of(h)]);
}

void Table::prefetch_line(std::uint64_t h) const noexcept {
  prefetch(home_of(h).line);
}

Table::Stats Table::stats() const noexcept {
  return {buckets_.load(std::memory_order_relaxed),         pages_.bytes(),
          header_->evicted.load(std::memory_order_relaxed), lost_races_.load(std::memory_order_relaxed),
          waits_.load(std::memory_order_relaxed),           rebuilds_.load(std::memory_order_relaxed),
          moved_.load(std::memory_order_relaxed),           refused_growth_.load(std::memory_order_relaxed)};
}

}  // namespace weir
