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

// A group grows when 23 of 32 slots are used. Fuller, and searches run long; emptier, and memory is wasted.
constexpr std::uint32_t full_at(Shape shape) {
  return shape.slots() * 23 / 32;
}
// When it cannot grow it fills up to this and evicts from then on. Searches end at a slot that was never used, so some
// stay.
constexpr std::uint32_t crammed_at(Shape shape) {
  return shape.slots() * 15 / 16;
}
// After a rebuild at most this much is live, so that the next one is some way off.
constexpr std::uint32_t roomy_at(Shape shape) {
  return shape.slots() * 19 / 32;
}

constexpr Shape kSmallest = Shape::of(Shape::kPagesMin, 0);

// The smallest shape that holds `live` keys with room to spare.
Shape shape_for(std::uint32_t live) {
  Shape shape = kSmallest;
  while (live > roomy_at(shape) && shape.larger().order() <= Pages::kOrderMax) shape = shape.larger();
  return shape;
}

// A log of names is rewritten when more of its buckets are gone than there are, and more than this.
constexpr std::uint32_t kNamesDeadMin = 16;

// Lines looked at for the bucket nearest to full.
constexpr std::uint32_t kEvictionLines = 8;

void raise(std::atomic<std::int64_t>& horizon, std::int64_t to) {
  std::int64_t seen = horizon.load(std::memory_order_relaxed);
  if (to < seen + kHorizonStep.count()) return;
  while (seen < to && !horizon.compare_exchange_weak(seen, to)) {
  }
}

// The wall clock may be set back, and a horizon that stayed behind would end every quota until the clock is there
// again. A reading that is merely old lowers it too; that only forgets less.
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

// May be forgotten: full, and full for everyone whose reading of the clock is used.
bool Table::dead(std::uint64_t word, std::uint64_t h, const Horizons& horizons) noexcept {
  const State state = decode(word, h);
  if (state == 0) return true;
  if (kind_of(word) == Kind::quota) return quota::end_of(state).time_since_epoch().count() < horizons.wall;
  return static_cast<std::int64_t>(state) < horizons.time;
}

// A slot for h, marked BUSY: the first from its home on that is dead or was never used. If h was evicted and its old
// slot is still there, that one is dead too: either it is taken, or one before it, where searches for h will end.
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

bool Table::claim_dead(std::size_t index, Slot& slot) noexcept {
  Side& side = sides_[index];
  Group& group = groups_[index];
  std::uint64_t word = slot.word.load(std::memory_order_acquire);
  const std::uint64_t tenant = slot.fingerprint.load(std::memory_order_relaxed);
  if (word == 0 || !dead(word, tenant)) return false;
  const bool evicted = decode(word, tenant) == 0;
  // Before the slot changes hands. Release: whoever finds the record through this store finds the pages it names.
  group.shape.store(Shape{group.shape.load(std::memory_order_relaxed)}.bumped().bits, std::memory_order_release);
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
// in its slot as a dead one, state 0, until somebody claims the slot.
void Table::evict_near(std::size_t index, std::uint64_t h, Now now, bool crammed) noexcept {
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const std::uint32_t lines = shape.lines();
  // Whoever spends from a bucket brings no wall clock; quotas are weighed all the same.
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
        // claim() will take this one. One that is only expired is no better than a victim: its owner may revive it.
        if (crammed && word != 0 && decode(word, tenant) == 0) return;
        if (word != 0 && decode(word, tenant) != 0) victim.consider(slots[i], word, tenant, now);
      }
      for (unsigned i = 0; i < kSlotsPerLine; ++i) never_used |= slots[i].word.load(std::memory_order_relaxed) == 0;
      // A group that cannot grow must reuse the very slot, and h may not be put behind one that was never used.
      if (crammed ? never_used : victim.slot != nullptr && searched + 1 >= kEvictionLines) break;
    }
    if (victim.slot == nullptr) return;  // an empty group: the few buckets over the bound are its first
  } while (!forget(index, victim));
}

// False if its owner was faster.
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

// Keeps the one nearest to full.
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
  // Asking has marked and unmarked every slot: not again with every insert while memory is short.
  sides_[index].patience = shape.slots() / 64;
}

void Table::reserve(std::uint64_t buckets) noexcept {
  const auto each = static_cast<std::uint32_t>(std::min(buckets, header_->buckets_max) / groups_count_);
  const Shape shape = shape_for(each + each / 16);  // some groups hold more than the others
  for (std::size_t i = 0; i < groups_count_; ++i) {
    const std::lock_guard lock(sides_[i].lock);
    if (shape.lines() <= Shape{groups_[i].shape.load(std::memory_order_relaxed)}.lines()) continue;
    (void)rebuild(i, [&](std::uint32_t) { return shape; });
  }
}

// Moves the live keys of a group into new pages, of the shape that `choose` makes of their number. Nobody can change a
// marked slot, so the number is final. False, and nothing changed, if there are no pages.
template <class Choose>
bool Table::rebuild(std::size_t index, Choose choose) noexcept {
  Group& group = groups_[index];
  Side& side = sides_[index];
  const Shape old{group.shape.load(std::memory_order_relaxed)};
  const Horizons now = horizons();  // once: what was counted as dead must not be alive when it is moved
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

  // The one store that takes the new pages into use. Old readers still see the old ones, where every word is marked.
  group.shape.store(next.bits, std::memory_order_release);
  std::array<Line, Shape::kPagesMax> left{};
  for (unsigned i = 0; i < old.pages(); ++i) left[i] = group.page[old.bank()][i].load(std::memory_order_relaxed);
  pages_.release(old.order(), std::span<const Line>(left.data(), old.pages()));
  if (side.names_dead > std::max(live, kNamesDeadMin)) compact_names(index);
  return true;
}

// Marks a line's slots, so that no spender can change them behind the copy; returns how many are alive. Dead ones are
// marked too: whoever revives one must wait and find it gone.
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

// Copies a marked slot to its place in the new pages, if it is alive.
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
      // The word first: a reader that finds the fingerprint must find the state with it. Release: one who comes here
      // with an old record and reads the word must find that the record is old.
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

// Cleans, shrinks or moves a group if that gives something back.
void Table::fit(std::size_t index) noexcept {
  Side& side = sides_[index];
  const std::lock_guard lock(side.lock);
  const Group& group = groups_[index];
  const Shape shape{group.shape.load(std::memory_order_relaxed)};
  const std::uint32_t live = count_live(group, shape);
  // Two steps of difference, so that a group at the edge does not go back and forth.
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
