// One atomic step of one thread in the model of the slot protocol, and the accounting that checks it. Test only.
// Loads and stores are in the same order as in table.cc (change, insert) and table_rebuild.cc (claim, evict_near,
// rebuild).
#pragma once

#include <algorithm>

#include "weir/store/memory/slot_model_state.h"

namespace weir::slot_model {

// Advances thread `me` of `state` by one access to shared memory. Afterwards fault() is null or the violated property.
class Stepper {
 public:
  Stepper(const Case& scenario, const Protocol& protocol, State& state, std::size_t me)
      : case_(scenario), rules_(protocol), state_(state), me_(me), t_(state.threads[me]) {}

  const char* fault() const { return fault_; }

  // `choice` selects a page if the step has to choose one. Returns false if the thread cannot move, or not with this
  // choice.
  bool step(std::size_t choice) {
    if (t_.pc == Pc::done || (choice != 0 && t_.pc != Pc::take_page)) return false;
    if (t_.pc <= Pc::look_again) return search();
    if (t_.pc <= Pc::wait_for_lock) return change();
    if (t_.pc <= Pc::unlock_and_retry) return insert();
    if (t_.pc <= Pc::evict_swap) return evict();
    if (t_.pc <= Pc::store_word) return claim();
    if (t_.pc <= Pc::mark_judge) return mark();
    if (t_.pc <= Pc::store_page) return prepare_pages(choice);
    if (t_.pc <= Pc::copy_fp) return move();
    return publish();
  }

  // Prepares the thread for operation number `op`, or ends it.
  void begin(std::size_t op) {
    t_ = Thread{};
    t_.op = small(op);
    if (op >= case_.programs[me_].size()) return;
    const Op::Kind kind = this->op().kind;
    t_.pc = rebuilds() ? Pc::mover_lock : kind == Op::Kind::raise_horizon ? Pc::raise_horizon : Pc::load_shape;
  }

  // Call for every thread after every step of any thread: a reset may report "it was full" if it was at any moment.
  void note_absence() {
    if (t_.pc != Pc::done && resets() && state_.truth[op().key] <= op().now) t_.absent = 1;
  }

 private:
  const Op& op() const { return case_.programs[me_][t_.op]; }
  bool resets() const { return op().kind == Op::Kind::reset; }
  bool rebuilds() const {
    return op().kind == Op::Kind::rebuild || op().kind == Op::Kind::refused || op().kind == Op::Kind::abandon;
  }
  Group& group() { return state_.groups[rebuilds() ? op().key : case_.group_of[op().key]]; }
  Slot& slot() { return state_.pages[t_.page][t_.slot]; }
  std::size_t capacity() { return group().shape.pages() * case_.slots; }
  // If true, the holder of the lock never finds a slot BUSY.
  bool locks_work() const {
    return rules_.insert_lock && rules_.mover_lock && rules_.unlock_after_publish && rules_.unmark_all;
  }
  bool fail(const char* fault) {
    fault_ = fault;
    return true;
  }
  bool go(Pc pc) {
    t_.pc = pc;
    return true;
  }
  // Clears what was read, so that states that differ only in stale registers are equal.
  bool start_again() {
    const Thread old = t_;
    begin(t_.op);
    t_.locked = old.locked;
    t_.absent = old.absent;
    t_.horizon = old.horizon;
    return true;
  }
  bool finish() {
    if (t_.locked) {
      start_again();
      return go(Pc::unlock);
    }
    begin(t_.op + 1u);
    return true;
  }
  // GCRA with interval 1 and cost 1. Returns the next TAT, or 0 if denied.
  std::size_t gcra(std::size_t tat, std::size_t now) const {
    const std::size_t backlog = std::min(tat > now ? tat - now : 0, case_.window);
    return backlog + 1 > case_.window ? 0 : now + backlog + 1;
  }
  // A spend of `key` decided at `now` takes effect here. The reference must allow it and agree on the TAT.
  void acknowledge(std::size_t key, std::size_t now, std::size_t tat) {
    const std::size_t right = gcra(state_.truth[key], now);
    if (right != tat) fault_ = right == 0 ? "a key was admitted beyond its burst" : "an acknowledged charge was lost";
    state_.truth[key] = small(right);
  }
  std::size_t state_of(Word word, std::size_t key) const { return tat_of(rules_, word, key, case_.noise); }
  bool dead(Word word, std::size_t key) const { return dead(word, key, state_.horizon); }
  bool dead(Word word, std::size_t key, std::size_t horizon) const {
    const std::size_t tat = state_of(word, key);
    return tat == 0 || tat < horizon;
  }

  // find(), outside the lock. A page represents a line, and every key's home is the first page.
  bool search() {
    switch (t_.pc) {
      case Pc::load_shape:
        t_.shape = group().shape;
        return go(Pc::load_page);
      case Pc::load_page:
        t_.page = group().pages[t_.shape.bank()][t_.index];
        return go(Pc::scan);
      case Pc::look_again:
        if (group().shape != t_.shape) return start_again();
        return missed();
      default:
        break;
    }
    if (slot().fp == op().key) {
      t_.free = 0;
      return go(Pc::load_word);
    }
    if (slot().fp == 0) t_.free = 1;
    if (++t_.slot < case_.slots) return true;
    t_.slot = 0;
    if (t_.free == 0 && ++t_.index < t_.shape.pages()) return go(Pc::load_page);
    t_.free = t_.index = 0;
    return rules_.look_again ? go(Pc::look_again) : missed();
  }

  // There is no such bucket, or it was evicted.
  bool missed() {
    if (resets()) return t_.absent != 0 ? finish() : fail("a reset missed a bucket that was there all the time");
    start_again();
    return go(rules_.horizon_under_lock ? Pc::lock : Pc::load_horizon);
  }

  bool change() {
    switch (t_.pc) {
      case Pc::load_word:
        if (slot().word == 0 || is_busy(slot().word)) {
          start_again();
          return go(Pc::wait_for_lock);
        }
        t_.word = slot().word;
        return rules_.reread_fp ? go(Pc::load_fp) : go(Pc::reload_shape);
      case Pc::load_fp:
        if (slot().fp != op().key) return start_again();
        return rules_.version ? go(Pc::reload_shape) : decide();
      case Pc::reload_shape:
        if (rules_.version && group().shape != t_.shape) return start_again();
        return decide();
      case Pc::reload_word:
        if (slot().word != t_.word) return start_again();
        if (!resets() && (!is_mine() || gcra(state_.truth[op().key], op().now) != 0)) {
          return fail("a key was denied that had room");
        }
        return finish();
      case Pc::swap_word:
        return swap_word();
      default:
        if (group().lock != 0) return false;
        return start_again();
    }
  }

  bool decide() {
    const std::size_t tat = state_of(t_.word, op().key);
    if (tat == 0 && (rules_.return_under_lock || resets())) return missed();
    if (resets()) {
      if (tat <= op().now) return go(Pc::reload_word);
      t_.want = rules_.reset_keeps_word ? make_word(rules_, op().key, op().now) : Word{0};
      return go(Pc::swap_word);
    }
    const std::size_t next = gcra(tat, op().now);
    if (next == 0) return go(Pc::reload_word);
    t_.want = make_word(rules_, op().key, next);
    return go(Pc::swap_word);
  }

  // The fingerprint of a copy may not be written yet.
  bool is_mine() {
    const std::size_t whose = slot().fp != 0 || !rules_.salt ? slot().fp : t_.word >> 8 & 0xfu;
    return whose == op().key;
  }

  bool swap_word() {
    if (slot().word != t_.word) return start_again();
    slot().word = t_.want;
    if (!is_mine()) return fail("one key's charge went to another key's bucket");
    if (!resets()) acknowledge(op().key, op().now, t_.want & 0xffu);
    state_.truth[op().key] = small(t_.want & 0xffu);
    return finish();
  }

  // `really` false: a mutant that only believes it holds the lock.
  bool acquire(bool really) {
    if (really && group().lock != 0) return false;
    if (really) group().lock = small(me_ + 1);
    t_.locked = 1;
    return true;
  }
  void release() {
    if (group().lock == me_ + 1) group().lock = 0;
  }

  // The record and the fingerprints of the group cannot change under its lock, so a search is one step.
  bool find_key() {
    const Shape shape = group().shape;
    for (t_.index = 0; t_.index < shape.pages(); ++t_.index) {
      bool never_used = false;
      t_.page = group().pages[shape.bank()][t_.index];
      for (t_.slot = 0; t_.slot < case_.slots; ++t_.slot) {
        if (slot().fp == op().key) return true;
        never_used |= slot().fp == 0;
      }
      if (never_used) break;
    }
    t_.index = t_.page = t_.slot = 0;
    return false;
  }

  bool insert() {
    switch (t_.pc) {
      case Pc::lock:
        if (!acquire(rules_.insert_lock)) return false;
        if (rules_.search_again) return go(Pc::find_locked);
        return rules_.horizon_under_lock ? go(Pc::load_horizon) : find_room();
      case Pc::find_locked:
        if (find_key()) return go(Pc::found_load);
        return rules_.horizon_under_lock ? go(Pc::load_horizon) : find_room();
      case Pc::found_load:
        if (is_busy(slot().word) && locks_work()) return fail("a key found under the group lock is busy");
        if (state_of(slot().word, op().key) != 0) return go(Pc::unlock_and_retry);
        return rules_.horizon_under_lock ? go(Pc::load_horizon) : find_room();
      case Pc::load_horizon:
        t_.horizon = state_.horizon;
        return rules_.horizon_under_lock ? find_room() : go(Pc::lock);
      default: {
        const bool again = t_.pc == Pc::unlock_and_retry;
        release();
        t_.locked = t_.horizon = 0;
        return again ? start_again() : finish();
      }
    }
  }

  // The start of claim(): a rebuild if the group is full, then an eviction if that did not help.
  bool find_room() {
    start_again();
    if (group().used < capacity()) return room_found();
    open_rebuild();
    return go(Pc::mark_load);
  }
  bool room_found() {
    start_again();
    t_.crammed = group().used >= capacity() ? 1 : 0;
    if (t_.crammed == 0 && state_.buckets < case_.bound) return begin_claim();
    return go(Pc::evict_load);
  }

  bool evict() {
    if (t_.pc == Pc::evict_swap) return evict_swap();
    t_.page = group().pages[group().shape.bank()][t_.index];
    const Word word = slot().word;
    const std::size_t tat = word == 0 ? 0 : state_of(word, slot().fp);
    const bool ready = word != 0 && (rules_.evict_dead ? tat == 0 : dead(word, slot().fp));
    if (t_.crammed != 0 && ready) return begin_claim();
    if (tat != 0 && (t_.victim == 0 || tat < state_of(t_.word, victim().fp))) {
      t_.victim = small(1u + t_.page * kSlots + t_.slot);
      t_.word = word;
    }
    if (++t_.slot < case_.slots) return true;
    t_.slot = 0;
    if (++t_.index < group().shape.pages()) return true;
    return t_.victim != 0 ? go(Pc::evict_swap) : begin_claim();
  }
  Slot& victim() { return state_.pages[(t_.victim - 1u) / kSlots][(t_.victim - 1u) % kSlots]; }

  bool evict_swap() {
    Slot& slot = victim();
    if (rules_.evict_by_swap && slot.word != t_.word) return room_found();
    // A deliberate eviction. A plain store could discard a word it never read, which counts as a fault.
    if (slot.word == t_.word && !dead(slot.word, slot.fp)) {
      state_.truth[slot.fp] = 0;
      ++state_.evictions;
    }
    slot.word = make_word(rules_, slot.fp, 0);
    --group().counted;
    --state_.buckets;
    return begin_claim();
  }

  bool begin_claim() {
    start_again();
    if (rules_.reclaim_own && find_key()) t_.own = 1;
    return go(Pc::claim_load);
  }

  bool claim() {
    switch (t_.pc) {
      case Pc::claim_load:
        if (t_.own == 0) t_.page = group().pages[group().shape.bank()][t_.index];
        t_.word = slot().word;
        if (t_.word == 0 && t_.free == 0) t_.free = small(t_.slot + 1u);
        if (t_.word == 0 || (is_busy(t_.word) && !locks_work())) return next_slot();
        return go(Pc::claim_judge);
      case Pc::claim_judge:
        if (!dead(t_.word, slot().fp)) return next_slot();
        return go(rules_.bump_on_claim && rules_.bump_first ? Pc::bump : Pc::claim_swap);
      case Pc::bump:
        group().shape = group().shape.bumped();
        return go(Pc::claim_swap);
      case Pc::claim_swap:
        if (rules_.claim_by_swap && slot().word != t_.word) return next_slot();
        slot().word = kBusy;
        if (state_of(t_.word, slot().fp) == 0) count_one();
        return go(rules_.bump_on_claim && !rules_.bump_first ? Pc::late_bump : Pc::store_fp);
      case Pc::late_bump:
        group().shape = group().shape.bumped();
        return go(Pc::store_fp);
      case Pc::claim_fresh:
        slot().word = kBusy;
        ++group().used;
        count_one();
        return go(Pc::store_fp);
      case Pc::store_fp:
        slot().fp = static_cast<Word>(op().key);
        return go(Pc::store_word);
      default:
        return store_word();
    }
  }
  void count_one() {
    ++group().counted;
    ++state_.buckets;
  }

  // This slot is not available. The dead slots of a page are tried first, then one that was never used.
  bool next_slot() {
    if (t_.own != 0) return fail("an evicted key could not take its own slot");
    t_.word = 0;
    if (++t_.slot < case_.slots) return go(Pc::claim_load);
    t_.slot = 0;
    if (t_.free != 0) {
      t_.slot = small(t_.free - 1u);
      return go(Pc::claim_fresh);
    }
    if (++t_.index < group().shape.pages()) return go(Pc::claim_load);
    return fail("no slot was left for a key");
  }

  bool store_word() {
    const std::size_t now = rules_.decide_at_horizon ? std::max<std::size_t>(op().now, t_.horizon) : op().now;
    slot().word = make_word(rules_, op().key, now + 1);
    acknowledge(op().key, now, now + 1);
    return finish();
  }

  void open_rebuild() {
    t_.shape = group().shape;
    t_.cut = state_.horizon;
    t_.old_pages = group().pages[t_.shape.bank()];
    if (rules_.size_after_mark) return;
    for (std::size_t i = 0; i < olds(); ++i) {
      const Slot& slot = old_slot(i);
      if (slot.word != 0 && !dead(slot.word, slot.fp, t_.cut)) ++t_.live;
    }
    choose();
  }
  std::size_t olds() const { return t_.shape.pages() * case_.slots; }
  Slot& old_slot(std::size_t i) { return state_.pages[t_.old_pages[i / case_.slots]][i % case_.slots]; }
  void choose() {
    const std::size_t least = rebuilds() ? op().pages : t_.shape.pages() + (t_.live == olds() ? 1u : 0u);
    const std::size_t needed = (t_.live + case_.slots - 1) / case_.slots;
    t_.wanted = small(std::min(std::max(least, needed), kGroupPages));
    t_.live = 0;
  }

  bool mark() {
    if (t_.pc == Pc::mover_lock) {
      if (!acquire(rules_.mover_lock)) return false;
      open_rebuild();
      return go(Pc::mark_load);
    }
    Slot& slot = old_slot(t_.from);
    switch (t_.pc) {
      case Pc::mark_load:
        if (is_busy(slot.word) && locks_work()) return fail("a rebuild met a busy slot under the lock");
        if (slot.word == 0 || is_busy(slot.word)) return marked();
        if (!rules_.mark_dead && dead(slot.word, slot.fp, t_.cut)) return marked();
        if (rules_.mark) return go(Pc::mark_swap);
        t_.word = slot.word;
        return go(Pc::mark_judge);
      case Pc::mark_swap:
        t_.word = slot.word;
        slot.word |= kBusy;
        return go(Pc::mark_judge);
      default:
        if (!dead(t_.word, slot.fp, t_.cut)) ++t_.live;
        return marked();
    }
  }

  bool marked() {
    t_.word = 0;
    if (++t_.from < olds()) return go(Pc::mark_load);
    t_.from = 0;
    if (rules_.size_after_mark) choose();
    t_.live = 0;
    return go(Pc::take_page);
  }

  bool prepare_pages(std::size_t choice) {
    switch (t_.pc) {
      case Pc::take_page:
        return take_page(choice);
      case Pc::store_page:
        group().pages[next().bank()][t_.from] = t_.new_pages[t_.from];
        if (++t_.from < t_.wanted) return true;
        t_.from = 0;
        return go(Pc::move_judge);
      default:
        return zero_slot();
    }
  }
  Shape next() const { return t_.shape.rebuilt(t_.wanted, rules_.two_banks, rules_.bump_on_rebuild); }

  bool take_page(std::size_t choice) {
    if (state_.free_pages == 0 || op().kind == Op::Kind::refused) return choice == 0 && give_up();
    const unsigned bit = 1u << choice;
    if ((state_.free_pages & bit) == 0) return false;
    state_.free_pages = small(state_.free_pages & ~bit);
    t_.new_pages[t_.taken] = small(choice);
    return go(Pc::zero_word);
  }

  bool zero_slot() {
    t_.page = t_.new_pages[t_.taken];
    ((t_.pc == Pc::zero_word) == rules_.zero_word_first ? slot().word : slot().fp) = 0;
    if (t_.pc == Pc::zero_word) return go(Pc::zero_fp);
    if (++t_.slot < case_.slots) return go(Pc::zero_word);
    t_.slot = t_.page = 0;
    return go(++t_.taken < t_.wanted ? Pc::take_page : Pc::store_page);
  }

  // No page is available: gives back the pages already taken and unmarks the slots.
  bool give_up() {
    for (std::size_t i = 0; i < t_.taken; ++i) state_.free_pages = small(state_.free_pages | 1u << t_.new_pages[i]);
    t_.taken = t_.wanted = t_.into = 0;
    t_.new_pages = {};
    t_.from = rules_.unmark_all ? 0 : 1;
    return t_.from < olds() ? go(Pc::unmark) : rebuilt();
  }

  bool move() {
    Slot& slot = old_slot(t_.from);
    const bool word_now = (t_.pc == Pc::copy_word) == rules_.copy_word_first;
    switch (t_.pc) {
      case Pc::move_judge:
        t_.word = slot.word & static_cast<Word>(~kBusy);
        if (t_.word == 0 || dead(t_.word, slot.fp, t_.cut)) return moved();
        if (t_.into >= t_.wanted * case_.slots) return fail("the new pages overflowed");
        return go(Pc::copy_word);
      default:
        (word_now ? target().word : target().fp) = word_now ? t_.word : slot.fp;
        if (t_.pc == Pc::copy_word) return go(Pc::copy_fp);
        ++t_.into;
        return moved();
    }
  }
  Slot& target() { return state_.pages[t_.new_pages[t_.into / case_.slots]][t_.into % case_.slots]; }

  bool moved() {
    t_.word = 0;
    if (++t_.from < olds()) return go(Pc::move_judge);
    t_.from = 0;
    if (op().kind == Op::Kind::abandon) return give_up();
    state_.buckets = small(state_.buckets + t_.into - group().counted);
    group().used = group().counted = t_.into;
    t_.into = 0;
    if (!rules_.unlock_after_publish) release();
    return go(rules_.free_after_publish ? Pc::publish : Pc::free_pages);
  }

  bool publish() {
    switch (t_.pc) {
      case Pc::publish:
        group().shape = next();
        return rules_.free_after_publish ? go(Pc::free_pages) : rebuilt();
      case Pc::free_pages:
        for (std::size_t i = 0; i < t_.shape.pages(); ++i) {
          const unsigned bit = 1u << t_.old_pages[i];
          if ((state_.free_pages & bit) != 0) return fail("a page was freed twice");
          state_.free_pages = small(state_.free_pages | bit);
        }
        return rules_.free_after_publish ? rebuilt() : go(Pc::publish);
      case Pc::unmark:
        old_slot(t_.from).word &= static_cast<Word>(~kBusy);
        return ++t_.from < olds() ? true : rebuilt();
      default:
        state_.horizon = std::max(state_.horizon, small(op().now));
        return finish();
    }
  }

  bool rebuilt() { return rebuilds() ? finish() : room_found(); }

  const Case& case_;
  const Protocol& rules_;
  State& state_;
  const std::size_t me_;
  Thread& t_;
  const char* fault_ = nullptr;
};

}  // namespace weir::slot_model
