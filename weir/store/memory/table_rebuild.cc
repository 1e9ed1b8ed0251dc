// Operations under a group's lock: finding room for a new key, moving a group to other pages, forgetting buckets.
#include <algorithm>
#include <array>
#include <chrono>

#include "weir/algorithm/calendar.h"
#include "weir/base/assert.h"
#include "weir/store/memory/table.h"

namespace weir {
namespace {

// The horizon trails the clock by this much, so that a thread with an older reading rarely has to use the horizon
// instead.
constexpr Duration kHorizonLag = std::chrono::seconds{1};
// A horizon is raised only in steps of at least this, to limit writes to a shared word.
constexpr Duration kHorizonStep = std::chrono::milliseconds{10};

// A group grows when 23 of 32 slots are used. A higher threshold makes searches long; a lower one wastes memory.
constexpr std::uint32_t full_at(Shape shape) {
  return shape.slots() * 23 / 32;
}
// A group that cannot grow fills up to this and then evicts. Some slots must stay unused, because searches end at them.
constexpr std::uint32_t crammed_at(Shape shape) {
  return shape.slots() * 15 / 16;
}
// After a rebuild at most this many slots are live, so that the next rebuild is not needed soon.
constexpr std::uint32_t roomy_at(Shape shape) {
  return shape.slots() * 19 / 32;
}

constexpr Shape kSmallest = Shape::of(Shape::kPagesMin, 0);

// Returns the smallest shape that holds `live` keys with room to spare.
Shape shape_for(std::uint32_t live) {
  Shape shape = kSmallest;
  while (live > roomy_at(shape) && shape.larger().order() <= Pages::kOrderMax) shape = shape.larger();
  return shape;
}

// A name log is rewritten when its dead entries outnumber the live buckets and exceed this number.
constexpr std::uint32_t kNamesDeadMin = 16;

// How many lines are searched for the bucket closest to full.
constexpr std::uint32_t kEvictionLines = 8;

void raise(std::atomic<std::int64_t>& horizon, std::int64_t to) {
  std::int64_t seen = horizon.load(std::memory_order_relaxed);
  if (to < seen + kHorizonStep.count()) return;
  while (seen < to && !horizon.compare_exchange_weak(seen, to)) {
  }
}

// Moves a horizon with the wall clock, also backward. If the clock is set back and the horizon stayed, every quota
// would count as ended until the clock catches up. An old reading lowers the horizon too, which only forgets less.
void follow(std::atomic<std::int64_t>& horizon, Wall wall) {
  const std::int64_t to = (wall.time_since_epoch() - kHorizonLag).count();
  std::int64_t seen = horizon.load(std::memory_order_relaxed);
  if (wall.time_since_epoch().count() < seen) {
    horizon.compare_exchange_strong(seen, to);
  } else {
    raise(horizon, to);
  }
}

}  // namespace

void Table::raise_horizon(Now now) noexcept {
  const Duration trails = std::max(kHorizonLag, Duration{idle_.load(std::memory_order_relaxed)});
  raise(header_->horizon, (now.time.time_since_epoch() - trails).count());
  if (now.wall != Wall{}) follow(header_->wall_horizon, now.wall);
}

Table::Horizons Table::horizons() const noexcept {
  return {header_->horizon.load(std::memory_order_relaxed), header_->wall_horizon.load(std::memory_order_relaxed)};
}

// Returns whether the bucket may be forgotten: it is full at every clock reading that is still used.
bool Table::dead(std::uint64_t word, std::uint64_t h, const Horizons& horizons) noexcept {
  const State state = decode(word, h);
  if (state == 0) return true;
  if (kind_of(word) == Kind::quota) return quota::end_of(state).time_since_epoch().count() < horizons.wall;
  return static_cast<std::int64_t>(state) < horizons.time;
}

// Returns a slot for h, marked BUSY: the first one at or after its home that is dead or was never used. If h was
// evicted and its old slot still exists, that slot is dead too. So claim() takes it or one before it, where searches
// for h will end.
Slot* Table::claim(std::size_t index, std::uint64_t h, Now now) noexcept {
  Side& side = sides_[index];
  const Group& group = groups_[index];
  if (side.used >= full_at(Shape{group.shape.load(std::memory_order_relaxed)})) {
    if (side.patience == 0) {
      make_room(index);
    } else {
      --side.patience;
    }
  }
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const bool crammed = side.used >= crammed_at(shape);
  if (crammed || buckets_.load(std::memory_order_relaxed) >= header_->buckets_max) evict_near(index, h, now, crammed);
  const std::uint32_t lines = shape.lines();
  std::uint32_t number = home(h, shape);
  for (std::uint32_t searched = 0; searched < lines; ++searched, number = number + 1 == lines ? 0 : number + 1) {
    Slot* const slots = line(group, shape, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      if (claim_dead(index, slots[i])) return &slots[i];
    }
    // Only then take one that was never used, because searches for other keys end at those.
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

bool Table::claim_dead(std::size_t index, Slot& slot) noexcept {
  Side& side = sides_[index];
  Group& group = groups_[index];
  std::uint64_t word = slot.word.load(std::memory_order_acquire);
  const std::uint64_t tenant = slot.fingerprint.load(std::memory_order_relaxed);
  if (word == 0 || !dead(word, tenant)) return false;
  const bool evicted = decode(word, tenant) == 0;
  // Must precede the change of hands. Release: a reader that acquires this shape sees the pages that it names.
  group.shape.store(Shape{group.shape.load(std::memory_order_relaxed)}.bumped().bits, std::memory_order_release);
  // Another thread may be spending from it; then the swap fails, and the bucket is not dead after all.
  if (!slot.word.compare_exchange_strong(word, kBusy, std::memory_order_acq_rel)) return false;
  ++side.names_dead;
  if (evicted) count_one(side);
  return true;
}

void Table::count_one(Side& side) noexcept {
  ++side.counted;
  buckets_.fetch_add(1, std::memory_order_relaxed);
}

// Evicts the bucket closest to full near h's home, so that the table stays within its bound. The bucket stays in its
// slot with state 0, dead, until the slot is claimed.
void Table::evict_near(std::size_t index, std::uint64_t h, Now now, bool crammed) noexcept {
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const std::uint32_t lines = shape.lines();
  // A spend from a rate's bucket has no wall clock reading, but quotas must be compared too.
  if (now.wall == Wall{}) {
    now.wall = Wall{Duration{header_->wall_horizon.load(std::memory_order_relaxed)} + kHorizonLag};
  }
  Victim victim;
  do {
    victim = {};
    bool never_used = false;
    std::uint32_t number = home(h, shape);
    for (std::uint32_t searched = 0; searched < lines; ++searched, number = number + 1 == lines ? 0 : number + 1) {
      Slot* const slots = line(group, shape, number);
      for (unsigned i = 0; i < kSlotsPerLine; ++i) {
        const std::uint64_t word = slots[i].word.load(std::memory_order_acquire);
        const std::uint64_t tenant = slots[i].fingerprint.load(std::memory_order_relaxed);
        // claim() will take this slot. A slot that is only expired does not suffice, because a spend may revive it.
        if (crammed && word != 0 && decode(word, tenant) == 0) return;
        if (word != 0 && decode(word, tenant) != 0) victim.consider(slots[i], word, tenant, now);
      }
      for (unsigned i = 0; i < kSlotsPerLine; ++i) never_used |= slots[i].word.load(std::memory_order_relaxed) == 0;
      // A group that cannot grow must reuse the victim's slot, and h must not be placed after a slot that was never
      // used.
      if (crammed ? never_used : victim.slot != nullptr && searched + 1 >= kEvictionLines) break;
    }
    if (victim.slot == nullptr) return;  // the group is empty: only its first bucket goes over the bound
  } while (!forget(index, victim));
}

// Returns false if another thread changed the bucket first.
bool Table::forget(std::size_t index, const Victim& victim) noexcept {
  const bool expired = dead(victim.word, victim.tenant);
  std::uint64_t word = victim.word;
  if (!victim.slot->word.compare_exchange_strong(word, encode(State{0}, victim.tenant, kind_of(word)),
                                                 std::memory_order_acq_rel))
    return false;
  if (!expired) header_->evicted.fetch_add(1, std::memory_order_relaxed);
  --sides_[index].counted;
  buckets_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// Keeps the current victim or the candidate, whichever is closer to full.
void Table::Victim::consider(Slot& candidate, std::uint64_t its_word, std::uint64_t its_tenant, Now now) noexcept {
  const State state = decode(its_word, its_tenant);
  const Duration its_wait = kind_of(its_word) == Kind::quota
                                ? quota::end_of(state) - now.wall
                                : Time{Duration{static_cast<std::int64_t>(state)}} - now.time;
  if (slot == nullptr || its_wait < wait) *this = {&candidate, its_word, its_tenant, its_wait};
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
  const Shape shape{groups_[index].shape.load(std::memory_order_relaxed)};
  const bool done = rebuild(index, [&](std::uint32_t live) {
    return live > roomy_at(shape) && shape.larger().order() <= Pages::kOrderMax ? shape.larger() : shape;
  });
  if (done) return;
  refused_growth_.fetch_add(1, std::memory_order_relaxed);
  // The attempt marked and unmarked every slot, so do not repeat it with every insert while memory is short.
  sides_[index].patience = shape.slots() / 64;
}

void Table::reserve(std::uint64_t buckets) noexcept {
  const auto each = static_cast<std::uint32_t>(std::min(buckets, header_->buckets_max) / groups_count_);
  const Shape shape = shape_for(each + each / 16);  // some groups have more buckets than others
  for (std::size_t i = 0; i < groups_count_; ++i) {
    const std::lock_guard lock(sides_[i].lock);
    if (shape.lines() <= Shape{groups_[i].shape.load(std::memory_order_relaxed)}.lines()) continue;
    (void)rebuild(i, [&](std::uint32_t) { return shape; });
  }
}

// Moves the live keys of a group to new pages. `choose` returns the new shape for the number of live keys; that number
// is final, because no thread can change a marked slot. Returns false and changes nothing if there are no pages.
template <class Choose>
bool Table::rebuild(std::size_t index, Choose choose) noexcept {
  Group& group = groups_[index];
  Side& side = sides_[index];
  const Shape old{group.shape.load(std::memory_order_relaxed)};
  const Horizons now = horizons();  // read once, so that a key counted as dead is not moved as alive
  std::uint32_t marked = 0;
  for (std::uint32_t number = 0; number < old.lines(); ++number) marked += mark(line(group, old, number), now);

  const Shape next = choose(marked).after(old);
  std::array<Line, Shape::kPagesMax> fresh{};
  if (!pages_.allocate(next.order(), std::span<Line>(fresh.data(), next.pages()))) {
    for (std::uint32_t slot = 0; slot < old.slots(); ++slot) {
      line(group, old, slot / kSlotsPerLine)[slot % kSlotsPerLine].word.fetch_and(~kBusy, std::memory_order_release);
    }
    return false;
  }
  for (unsigned i = 0; i < next.pages(); ++i) group.page[next.bank()][i].store(fresh[i], std::memory_order_relaxed);
  std::uint32_t live = 0;
  for (std::uint32_t slot = 0; slot < old.slots(); ++slot) {
    live += move(group, line(group, old, slot / kSlotsPerLine)[slot % kSlotsPerLine], next, now) ? 1 : 0;
  }
  side.names_dead += side.used - live;
  buckets_.fetch_add(live - std::uint64_t{side.counted}, std::memory_order_relaxed);
  side.used = side.counted = live;
  rebuilds_.fetch_add(1, std::memory_order_relaxed);
  moved_.fetch_add(live, std::memory_order_relaxed);

  // This one store switches to the new pages. Readers with the old record still see the old pages, where every word is
  // marked.
  group.shape.store(next.bits, std::memory_order_release);
  std::array<Line, Shape::kPagesMax> left{};
  for (unsigned i = 0; i < old.pages(); ++i) left[i] = group.page[old.bank()][i].load(std::memory_order_relaxed);
  pages_.release(old.order(), std::span<const Line>(left.data(), old.pages()));
  if (side.names_dead > std::max(live, kNamesDeadMin)) compact_names(index);
  return true;
}

// Marks a line's slots, so that no spender can change them after they are copied. Returns how many are alive. Dead
// slots are marked too: a spender that would revive one must wait and then finds it gone.
std::uint32_t Table::mark(Slot* slots, const Horizons& horizons) noexcept {
  std::uint32_t live = 0;
  for (unsigned i = 0; i < kSlotsPerLine; ++i) {
    std::uint64_t word = slots[i].word.load(std::memory_order_relaxed);
    if (word == 0) continue;
    word = slots[i].word.fetch_or(kBusy, std::memory_order_acq_rel);
    live += dead(word, slots[i].fingerprint.load(std::memory_order_relaxed), horizons) ? 0 : 1;
  }
  return live;
}

// Copies a marked slot to its place in the new pages if it is alive.
bool Table::move(Group& group, Slot& from, Shape to, const Horizons& horizons) noexcept {
  const std::uint64_t word = from.word.load(std::memory_order_relaxed) & ~kBusy;
  const std::uint64_t h = from.fingerprint.load(std::memory_order_relaxed);
  if (word == 0 || dead(word, h, horizons)) return false;
  const std::uint32_t lines = to.lines();
  std::uint32_t number = home(h, to);
  for (std::uint32_t searched = 0; searched < lines; ++searched, number = number + 1 == lines ? 0 : number + 1) {
    Slot* const slots = line(group, to, number);
    for (unsigned i = 0; i < kSlotsPerLine; ++i) {
      if (slots[i].word.load(std::memory_order_relaxed) != 0) continue;
      // The word first, because a reader that finds the fingerprint must also find the state. Release: a reader that
      // gets here with an old record and reads the word must then see that its record is old.
      slots[i].word.store(word, std::memory_order_release);
      slots[i].fingerprint.store(h, std::memory_order_release);
      return true;
    }
  }
  WEIR_ASSERT(false);  // the shape was chosen to hold them all
}

bool Table::scattered(const Group& group, Shape shape) noexcept {
  std::array<Line, Shape::kPagesMax> pages{};
  for (unsigned i = 0; i < shape.pages(); ++i) pages[i] = group.page[shape.bank()][i].load(std::memory_order_relaxed);
  return pages_.scattered(shape.order(), std::span<const Line>(pages.data(), shape.pages()));
}

// Cleans, shrinks or moves a group if that frees memory.
void Table::fit(std::size_t index) noexcept {
  Side& side = sides_[index];
  const std::lock_guard lock(side.lock);
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const std::uint32_t live = count_live(group, shape);
  // Requires a difference of two steps, so that a group near the threshold does not shrink and grow repeatedly.
  const bool shrink = shape_for(live).larger().lines() < shape.lines();
  const bool clean = side.used - live > shape.slots() / 8;
  if (shrink || clean || scattered(group, shape)) {
    (void)rebuild(index, [&](std::uint32_t marked) { return shrink ? shape_for(marked) : shape; });
  } else if (side.names_dead > std::max(live, kNamesDeadMin)) {
    compact_names(index);
  }
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
