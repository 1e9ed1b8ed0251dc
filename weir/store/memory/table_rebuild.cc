// What happens under a group's lock: finding room for a new key, moving a group into other pages, forgetting.
#include <algorithm>
#include <array>
#include <chrono>

#include "weir/algorithm/calendar.h"
#include "weir/base/assert.h"
#include "weir/store/memory/table.h"

namespace weir {
namespace {

// The horizon trails the clock by this much, so that a thread with an older reading rarely has to use the horizon's.
constexpr Duration kHorizonLag = std::chrono::seconds{1};
// How often, at most, a horizon is raised: it is one shared word.
constexpr Duration kHorizonStep = std::chrono::milliseconds{10};

// A group grows when 13 of 16 slots are used. Fuller, and searches run long; emptier, and memory is wasted.
constexpr std::uint32_t full_at(Shape shape) {
  return shape.slots() * 13 / 16;
}
// When it cannot grow it fills up to this and evicts from then on. Searches end at a slot that was never used, so some
// stay.
constexpr std::uint32_t crammed_at(Shape shape) {
  return shape.slots() * 15 / 16;
}
// After a rebuild at most this much is live, so that the next one is some way off.
constexpr std::uint32_t roomy_at(Shape shape) {
  return shape.slots() * 11 / 16;
}

constexpr Shape kSmallest = Shape::of(Shape::kPagesMin, 0, 0);

// The smallest shape that holds `live` keys with room to spare.
Shape shape_for(std::uint32_t live) {
  Shape shape = kSmallest;
  while (live > roomy_at(shape) && shape.larger().order() <= Pages::kOrderMax) shape = shape.larger();
  return shape;
}

// Lines looked at for the bucket nearest to full.
constexpr std::uint32_t kEvictionLines = 8;

void raise(std::atomic<std::int64_t>& horizon, std::int64_t to) {
  std::int64_t seen = horizon.load(std::memory_order_relaxed);
  if (to < seen + kHorizonStep.count()) return;
  while (seen < to && !horizon.compare_exchange_weak(seen, to)) {
  }
}

}  // namespace

void Table::raise_horizon(Now now) noexcept {
  raise(header_->horizon, (now.time.time_since_epoch() - kHorizonLag).count());
  if (now.wall != Wall{}) raise(header_->wall_horizon, (now.wall.time_since_epoch() - kHorizonLag).count());
}

// May be forgotten: full, and full for everyone whose reading of the clock is used.
bool Table::dead(std::uint64_t word, std::uint64_t h) const noexcept {
  const State state = decode(word, h);
  if (state == 0) return true;
  if (kind_of(word) == Kind::quota) {
    return quota::end_of(state).time_since_epoch().count() < header_->wall_horizon.load(std::memory_order_relaxed);
  }
  return static_cast<std::int64_t>(state) < header_->horizon.load(std::memory_order_relaxed);
}

// A slot for h, marked BUSY: the first from its home on that is dead or was never used.
Slot* Table::claim(std::size_t index, std::uint64_t h, Now now) noexcept {
  Side& side = sides_[index];
  const Group& group = groups_[index];
  if (side.used >= full_at(Shape{group.shape.load(std::memory_order_relaxed)})) make_room(index);
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const bool crammed = side.used >= crammed_at(shape);
  if (crammed || buckets_.load(std::memory_order_relaxed) >= header_->buckets_max) evict_near(index, h, now, crammed);
  const std::uint32_t lines = shape.lines();
  std::uint32_t number = home(h, shape);
  for (std::uint32_t searched = 0; searched < lines; ++searched, number = number + 1 == lines ? 0 : number + 1) {
    Slot* const slots = line(group, shape, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      if (claim_dead(side, slots[i])) return &slots[i];
    }
    // Only then one that was never used: searches for other keys end at those.
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      if (slots[i].word.load(std::memory_order_relaxed) != 0) continue;
      slots[i].word.store(kBusy, std::memory_order_relaxed);
      ++side.used;
      count_one(side);
      return &slots[i];
    }
  }
  WEIR_ASSERT(false);  // crammed_at() keeps slots free in every group
}

bool Table::claim_dead(Side& side, Slot& slot) noexcept {
  std::uint64_t word = slot.word.load(std::memory_order_acquire);
  const std::uint64_t tenant = slot.fingerprint.load(std::memory_order_relaxed);
  if (word == 0 || !dead(word, tenant)) return false;
  const bool evicted = decode(word, tenant) == 0;
  // Its owner may be spending it this moment; then it is not dead after all.
  if (!slot.word.compare_exchange_strong(word, kBusy, std::memory_order_acq_rel)) return false;
  ++side.names_dead;
  if (evicted) count_one(side);
  return true;
}

void Table::count_one(Side& side) noexcept {
  ++side.counted;
  buckets_.fetch_add(1, std::memory_order_relaxed);
}

// Forgets the bucket nearest to full among those close to h's home, so that the table stays within its bound. It stays
// in its slot as a dead one, state 0; if its owner comes back before the slot is reused it starts full.
void Table::evict_near(std::size_t index, std::uint64_t h, Now now, bool crammed) noexcept {
  const Group& group = groups_[index];
  Side& side = sides_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const std::uint32_t lines = shape.lines();
  for (;;) {
    Slot* victim = nullptr;
    std::uint64_t victim_word = 0;
    Duration victim_wait = Duration::max();
    std::uint32_t number = home(h, shape);
    for (std::uint32_t searched = 0; searched < lines; ++searched, number = number + 1 == lines ? 0 : number + 1) {
      Slot* const slots = line(group, shape, number);
      bool never_used = false;
      for (unsigned i = 0; i < kSlotsPerLine; ++i) {
        const std::uint64_t word = slots[i].word.load(std::memory_order_acquire);
        never_used |= word == 0;
        if (word == 0) continue;
        const std::uint64_t tenant = slots[i].fingerprint.load(std::memory_order_relaxed);
        if (dead(word, tenant)) return;  // room without forgetting anybody
        const State state = decode(word, tenant);
        const Duration wait = kind_of(word) == Kind::quota
                                  ? quota::end_of(state) - now.wall
                                  : Time{Duration{static_cast<std::int64_t>(state)}} - now.time;
        if (victim != nullptr && wait >= victim_wait) continue;
        victim = &slots[i];
        victim_word = word;
        victim_wait = wait;
      }
      // A group that cannot grow must reuse the very slot, and h may not be put behind one that was never used.
      if (crammed ? never_used : victim != nullptr && searched + 1 >= kEvictionLines) break;
    }
    if (victim == nullptr) return;  // an empty group: the few buckets over the bound are its first
    const std::uint64_t tenant = victim->fingerprint.load(std::memory_order_relaxed);
    const std::uint64_t forgotten = encode(State{0}, tenant, kind_of(victim_word));
    if (!victim->word.compare_exchange_strong(victim_word, forgotten, std::memory_order_acq_rel)) continue;
    header_->evicted.fetch_add(1, std::memory_order_relaxed);
    --side.counted;
    buckets_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

std::uint32_t Table::count_live(const Group& group, Shape shape) const noexcept {
  std::uint32_t live = 0;
  for (std::uint32_t number = 0; number < shape.lines(); ++number) {
    const Slot* const slots = line(group, shape, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      const std::uint64_t word = slots[i].word.load(std::memory_order_relaxed);
      if (word != 0 && !dead(word, slots[i].fingerprint.load(std::memory_order_relaxed))) ++live;
    }
  }
  return live;
}

void Table::make_room(std::size_t index) noexcept {
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const std::uint32_t live = count_live(group, shape);
  Shape next = live > roomy_at(shape) ? shape.larger() : shape;
  if (next.order() > Pages::kOrderMax) next = shape;
  if (!rebuild(index, next)) refused_growth_.fetch_add(1, std::memory_order_relaxed);
}

// Moves the live keys of a group into new pages of the given shape. False, and nothing changed, if there are no pages.
bool Table::rebuild(std::size_t index, Shape shape) noexcept {
  Group& group = groups_[index];
  Side& side = sides_[index];
  const Shape old{group.shape.load(std::memory_order_relaxed)};
  const Shape next = Shape::of(shape.pages(), shape.order(), 1 - old.bank());
  std::array<Line, Shape::kPagesMax> fresh{};
  const std::span<Line> pages(fresh.data(), next.pages());
  if (!pages_.allocate(next.order(), pages)) return false;
  for (unsigned i = 0; i < next.pages(); ++i) group.page[next.bank()][i].store(fresh[i], std::memory_order_relaxed);

  std::uint32_t live = 0;
  for (std::uint32_t number = 0; number < old.lines(); ++number) {
    Slot* const slots = line(group, old, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) live += move(group, slots[i], next) ? 1 : 0;
  }
  side.names_dead += side.used - live;
  buckets_.fetch_add(live - std::uint64_t{side.counted}, std::memory_order_relaxed);
  side.used = side.counted = live;
  rebuilds_.fetch_add(1, std::memory_order_relaxed);
  moved_.fetch_add(live, std::memory_order_relaxed);

  // The one store that takes the new pages into use. Old readers still see the old ones, where every word is marked.
  group.shape.store(next.bits, std::memory_order_release);
  std::array<Line, Shape::kPagesMax> left{};
  for (unsigned i = 0; i < old.pages(); ++i) left[i] = group.page[old.bank()][i].load(std::memory_order_relaxed);
  pages_.release(old.order(), std::span<const Line>(left.data(), old.pages()));
  return true;
}

// Marks the slot, so that no spender can change it behind the copy, and copies it; a dead one is left behind, marked
// too.
bool Table::move(Group& group, Slot& from, Shape to) noexcept {
  std::uint64_t word = from.word.load(std::memory_order_acquire);
  if (word == 0) return false;
  while (!from.word.compare_exchange_weak(word, word | kBusy, std::memory_order_acq_rel)) {
  }
  const std::uint64_t h = from.fingerprint.load(std::memory_order_relaxed);
  if (dead(word, h)) return false;
  const std::uint32_t lines = to.lines();
  std::uint32_t number = home(h, to);
  for (std::uint32_t searched = 0; searched < lines; ++searched, number = number + 1 == lines ? 0 : number + 1) {
    Slot* const slots = line(group, to, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      if (slots[i].word.load(std::memory_order_relaxed) != 0) continue;
      // The word first: a reader that finds the fingerprint must find the state with it.
      slots[i].word.store(word, std::memory_order_relaxed);
      slots[i].fingerprint.store(h, std::memory_order_release);
      return true;
    }
  }
  WEIR_ASSERT(false);  // the shape was chosen to hold them all
}

bool Table::scattered(const Group& group, Shape shape) const noexcept {
  std::array<Line, Shape::kPagesMax> pages{};
  for (unsigned i = 0; i < shape.pages(); ++i) pages[i] = group.page[shape.bank()][i].load(std::memory_order_relaxed);
  return pages_.scattered(shape.order(), std::span<const Line>(pages.data(), shape.pages()));
}

// Cleans, shrinks or moves a group if that gives something back.
void Table::fit(std::size_t index) noexcept {
  Side& side = sides_[index];
  const std::lock_guard lock(side.lock);
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const std::uint32_t live = count_live(group, shape);
  const Shape fitting = shape_for(live);
  // Two steps of difference, so that a group at the edge does not go back and forth.
  const bool shrink = fitting.larger().lines() < shape.lines();
  const bool clean = side.used - live > shape.slots() / 8;
  if (shrink || clean || scattered(group, shape)) (void)rebuild(index, shrink ? fitting : shape);
  if (side.names_dead > std::max(live, 16u)) compact_names(index);
}

bool Table::maintain(Now now, std::size_t groups_max) noexcept {
  const std::lock_guard alone(maintaining_);
  raise_horizon(now);
  header_->wall_minus_time.store((now.wall.time_since_epoch() - now.time.time_since_epoch()).count(),
                                 std::memory_order_relaxed);
  for (std::size_t i = 0; i < groups_max && next_to_maintain_ < groups_count_; ++i) fit(next_to_maintain_++);
  pages_.maintain();
  if (next_to_maintain_ < groups_count_) return false;
  next_to_maintain_ = 0;
  return true;
}

}  // namespace weir
