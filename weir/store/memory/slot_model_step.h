// One atomic step of one thread of the slot protocol's model, and the accounts it is held to. Test only.
#pragma once

#include <algorithm>

#include "weir/store/memory/slot_model_state.h"

namespace weir::slot_model {

// Moves thread `me` of `state` by one access to shared memory. Afterwards fault() is null or the property that broke.
class Stepper {
 public:
  Stepper(const Case& scenario, const Protocol& protocol, State& state, std::size_t me)
      : case_(scenario), rules_(protocol), state_(state), me_(me), t_(state.threads[me]) {}

  const char* fault() const { return fault_; }

  // `choice` picks the page where there is one to be picked. False: the thread cannot move, or not so.
  bool step(std::size_t choice) {
    if (t_.pc == Pc::done) return false;
    if (choice != 0 && t_.pc != Pc::take_page) return false;
    if (t_.pc <= Pc::scan) return search();
    if (t_.pc <= Pc::wait_for_lock) return spend_on_slot();
    if (t_.pc <= Pc::load_horizon) return locks();
    if (t_.pc <= Pc::store_word) return insert();
    if (t_.pc <= Pc::zero_fp) return prepare_pages(choice);
    if (t_.pc <= Pc::copy_word) return move_slots();
    return publish();
  }

  // Sets the thread up for its op number `op`, or ends it.
  void begin(std::size_t op) {
    t_ = Thread{};
    t_.op = small(op);
    if (op >= case_.programs[me_].size()) return;
    switch (this->op().kind) {
      case Op::Kind::spend:
      case Op::Kind::reset:
        t_.pc = Pc::load_count;
        return;
      case Op::Kind::abandon:
      case Op::Kind::rebuild:
        t_.pc = Pc::mover_lock;
        return;
      case Op::Kind::raise_horizon:
        t_.pc = Pc::raise_horizon;
        return;
    }
  }

 private:
  const Op& op() const { return case_.programs[me_][t_.op]; }
  bool resets() const { return op().kind == Op::Kind::reset; }
  bool rebuilds() const { return op().kind == Op::Kind::rebuild || op().kind == Op::Kind::abandon; }
  Group& group() { return state_.groups[rebuilds() ? op().key : case_.group_of[op().key]]; }
  Slot& slot() { return state_.pages[t_.page][t_.slot]; }
  bool locks_work() const { return rules_.insert_lock && rules_.mover_lock && rules_.unlock_after_publish; }
  bool fail(const char* fault) {
    fault_ = fault;
    return true;
  }
  bool go(Pc pc) {
    t_.pc = pc;
    return true;
  }
  // Forgets what was read, so that states that differ only in stale registers are one.
  bool start_again() {
    const Small locked = t_.locked;
    const Small horizon = t_.horizon;
    begin(t_.op);
    t_.locked = locked;
    t_.horizon = horizon;
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
  // GCRA with interval 1 and cost 1: the next TAT, or 0 when denied.
  std::size_t gcra(std::size_t tat, std::size_t now) const {
    const std::size_t backlog = std::min(tat > now ? tat - now : 0, case_.window);
    return backlog + 1 > case_.window ? 0 : now + backlog + 1;
  }
  // The spend of `key` decided at `now` takes effect here. The truth must allow it and agree on the TAT.
  void acknowledge(std::size_t key, std::size_t now, std::size_t tat) {
    const std::size_t right = gcra(state_.truth[key], now);
    if (right != tat) fault_ = right == 0 ? "a key was admitted beyond its burst" : "an acknowledged charge was lost";
    state_.truth[key] = small(right);
  }

  bool search() {
    switch (t_.pc) {
      case Pc::load_count:
        t_.count = group().count;
        t_.index = 0;
        return go(Pc::load_page);
      case Pc::load_page:
        t_.page = group().pages[t_.index];
        t_.slot = 0;
        return go(Pc::scan);
      default:
        break;
    }
    if (slot().fp == op().key) {
      if (!t_.locked || rules_.spend_under_lock) return go(Pc::load_word);
      return go(Pc::unlock_and_retry);
    }
    if (++t_.slot < case_.slots) return true;
    t_.slot = 0;
    if (++t_.index < t_.count) return go(Pc::load_page);
    return missed();
  }

  bool missed() {
    const bool locked = t_.locked != 0;
    start_again();
    if (!locked) return go(rules_.horizon_under_lock || resets() ? Pc::lock : Pc::load_horizon);
    if (resets()) return finish();  // a forgotten bucket is a full one
    if (rules_.horizon_under_lock) return go(Pc::load_horizon);
    return go(Pc::claim_load);
  }

  // Found a slot that is being claimed, moved or cleared.
  bool meet_busy() {
    if (!t_.locked) {
      start_again();
      return go(Pc::wait_for_lock);
    }
    return locks_work() ? fail("a key found under the group lock is busy") : true;
  }

  bool spend_on_slot() {
    switch (t_.pc) {
      case Pc::load_word:
        if (slot().word == 0 || is_busy(slot().word)) return meet_busy();
        t_.word = slot().word;
        return rules_.reread_fp ? go(Pc::load_fp) : decide();
      case Pc::load_fp:
        if (slot().fp != op().key) return start_again();
        return decide();
      case Pc::reload_word:
        if (!unchanged()) return start_again();
        if (slot().fp != op().key || gcra(state_.truth[op().key], op().now) != 0) {
          return fail("a key was denied that had room");
        }
        return finish();
      case Pc::swap_word:
        return swap_word();
      default:
        if (group().lock != 0) return false;
        return go(Pc::load_count);
    }
  }

  bool decide() {
    if (resets()) {
      t_.want = rules_.reset_keeps_word ? make_word(rules_, op().key, op().now) : Word{0};
      return go(Pc::swap_word);
    }
    const std::size_t next = gcra(tat_of(rules_, t_.word, op().key, case_.noise), op().now);
    if (next == 0) return go(Pc::reload_word);
    t_.want = make_word(rules_, op().key, next);
    return go(Pc::swap_word);
  }

  bool unchanged() { return slot().word == t_.word && (!rules_.swap_both || slot().fp == op().key); }

  bool swap_word() {
    if (!unchanged()) return start_again();
    slot().word = t_.want;
    if (slot().fp != op().key) return fail("one key's charge went to another key's bucket");
    if (!resets()) acknowledge(op().key, op().now, t_.want & 0xffu);
    state_.truth[op().key] = small(t_.want & 0xffu);
    return finish();
  }

  // `really` false: a mutant only believes that it holds the lock.
  bool acquire(bool really) {
    if (really && group().lock != 0) return false;
    if (really) group().lock = small(me_ + 1);
    t_.locked = 1;
    return true;
  }
  void release() {
    if (group().lock == me_ + 1) group().lock = 0;
  }

  bool locks() {
    switch (t_.pc) {
      case Pc::lock:
        if (!acquire(rules_.insert_lock)) return false;
        if (rules_.search_again || resets()) return go(Pc::load_count);
        return go(rules_.horizon_under_lock ? Pc::load_horizon : Pc::claim_load);
      case Pc::unlock:
      case Pc::unlock_and_retry:
        release();
        t_.locked = 0;
        return t_.pc == Pc::unlock ? finish() : start_again();
      default:
        t_.horizon = state_.horizon;
        return go(rules_.horizon_under_lock ? Pc::claim_load : Pc::lock);
    }
  }

  bool dead(Word word, std::size_t key) const { return tat_of(rules_, word, key, case_.noise) < t_.horizon; }

  // The record and the fingerprints of the group cannot change under its lock: reading them is no step of its own.
  bool insert() {
    switch (t_.pc) {
      case Pc::claim_load:
        t_.page = group().pages[t_.index];
        t_.word = slot().word;
        if (t_.word == 0 || (!is_busy(t_.word) && dead(t_.word, slot().fp))) return go(Pc::claim_swap);
        return next_claim();
      case Pc::claim_swap:
        if (rules_.claim_by_swap && slot().word != t_.word) return go(Pc::claim_load);
        slot().word = kBusy;
        return go(Pc::store_fp);
      case Pc::evict_load:
        t_.page = group().pages[0];
        t_.slot = 0;
        if (is_busy(slot().word)) return true;
        t_.word = slot().word;
        return go(Pc::evict_swap);
      case Pc::evict_swap:
        if (rules_.evict_by_swap && slot().word != t_.word) return go(Pc::evict_load);
        // Forgotten knowingly; a plain store would forget what it never saw, and that is not excused.
        if (slot().word == t_.word) state_.truth[slot().fp] = 0;
        ++state_.evictions;
        slot().word = kBusy;
        return go(Pc::store_fp);
      case Pc::store_fp:
        slot().fp = static_cast<Word>(op().key);
        return go(Pc::store_word);
      default:
        return store_word();
    }
  }

  bool store_word() {
    const std::size_t now = rules_.decide_at_horizon ? std::max<std::size_t>(op().now, t_.horizon) : op().now;
    slot().word = make_word(rules_, op().key, now + 1);
    acknowledge(op().key, now, now + 1);
    return finish();
  }

  bool next_claim() {
    if (++t_.slot < case_.slots) return true;
    t_.slot = 0;
    if (++t_.index < group().count) return true;
    t_.index = 0;
    if (case_.evict || group().count == kGroupPages) return go(Pc::evict_load);
    open_rebuild();
    return go(Pc::take_page);
  }

  void open_rebuild() {
    t_.olds = group().count;
    t_.old_pages = group().pages;
    t_.taken = t_.from = t_.into = 0;
  }
  std::size_t pages_wanted() const { return rebuilds() ? op().pages : t_.olds + 1u; }

  bool prepare_pages(std::size_t choice) {
    switch (t_.pc) {
      case Pc::mover_lock:
        if (!acquire(rules_.mover_lock)) return false;
        t_.horizon = state_.horizon;  // only ever raised: an older one drops less
        open_rebuild();
        return go(Pc::take_page);
      case Pc::take_page:
        return take_page(choice);
      default:
        return zero_slot();
    }
  }

  bool zero_slot() {
    t_.page = t_.new_pages[t_.taken];
    ((t_.pc == Pc::zero_word) == rules_.zero_word_first ? slot().word : slot().fp) = 0;
    if (t_.pc == Pc::zero_word) return go(Pc::zero_fp);
    if (++t_.slot < case_.slots) return go(Pc::zero_word);
    t_.slot = 0;
    t_.page = 0;
    return go(++t_.taken < pages_wanted() ? Pc::take_page : Pc::mark_load);
  }

  bool take_page(std::size_t choice) {
    if (state_.free_pages == 0) return choice == 0 ? give_up() : false;
    const unsigned bit = 1u << choice;
    if (choice >= kPages || (state_.free_pages & bit) == 0) return false;
    state_.free_pages = small(state_.free_pages & ~bit);
    t_.new_pages[t_.taken] = small(choice);
    return go(Pc::zero_word);
  }

  // No page to be had: nothing was marked yet, so what was taken is given back. An insert evicts instead.
  bool give_up() {
    for (std::size_t i = 0; i < t_.taken; ++i) state_.free_pages = small(state_.free_pages | 1u << t_.new_pages[i]);
    t_.taken = 0;
    return rebuilds() ? finish() : go(Pc::evict_load);
  }

  bool move_slots() {
    t_.page = t_.old_pages[t_.from / case_.slots];
    t_.slot = small(t_.from % case_.slots);
    switch (t_.pc) {
      case Pc::mark_load:
        t_.word = slot().word;
        if (is_busy(t_.word)) return locks_work() ? fail("a rebuild met a busy slot under the lock") : moved();
        if (!rules_.mark) return word_marked();
        if (!rules_.mark_dead && dead(t_.word, slot().fp)) return moved();
        return go(Pc::mark_swap);
      case Pc::mark_swap:
        if (slot().word != t_.word) return go(Pc::mark_load);
        slot().word |= kBusy;
        return word_marked();
      case Pc::copy_fp:
        t_.want = slot().fp;
        target().fp = t_.want;
        return go(Pc::copy_word);
      default:
        target().word = t_.word;
        ++t_.into;
        return moved();
    }
  }
  Slot& target() { return state_.pages[t_.new_pages[t_.into / case_.slots]][t_.into % case_.slots]; }

  bool word_marked() {
    if (t_.word == 0 || dead(t_.word, slot().fp)) return moved();
    if (t_.into >= t_.taken * case_.slots) return fail("the new pages overflowed");
    return go(Pc::copy_fp);
  }

  bool moved() {
    t_.word = t_.want = 0;
    t_.page = t_.slot = 0;
    if (++t_.from < t_.olds * case_.slots) return go(Pc::mark_load);
    t_.from = t_.into = 0;
    if (op().kind == Op::Kind::abandon) return go(Pc::unmark);
    if (!rules_.unlock_after_publish) release();
    if (!rules_.free_after_publish) return go(Pc::free_page);
    return publish_record();
  }
  bool publish_record() { return go(rules_.pages_before_count ? Pc::publish_page : Pc::publish_count); }

  bool publish() {
    switch (t_.pc) {
      case Pc::publish_page:
        group().pages[t_.from] = t_.new_pages[t_.from];
        if (++t_.from < t_.taken) return true;
        t_.from = 0;
        if (rules_.pages_before_count) return go(Pc::publish_count);
        return rules_.free_after_publish ? go(Pc::free_page) : rebuilt();
      case Pc::publish_count:
        group().count = t_.taken;
        if (!rules_.pages_before_count) return go(Pc::publish_page);
        return rules_.free_after_publish ? go(Pc::free_page) : rebuilt();
      case Pc::free_page:
        return free_page();
      case Pc::unmark:
        for (std::size_t i = 0; i < t_.olds * case_.slots; ++i) {
          state_.pages[t_.old_pages[i / case_.slots]][i % case_.slots].word &= static_cast<Word>(~kBusy);
        }
        return give_up();
      default:
        state_.horizon = std::max(state_.horizon, small(op().now));
        return finish();
    }
  }

  bool free_page() {
    const unsigned bit = 1u << t_.old_pages[t_.from];
    if ((state_.free_pages & bit) != 0) return fail("a page was freed twice");
    state_.free_pages = small(state_.free_pages | bit);
    if (++t_.from < t_.olds) return true;
    t_.from = 0;
    return rules_.free_after_publish ? rebuilt() : publish_record();
  }

  bool rebuilt() {
    if (rebuilds()) return finish();
    start_again();
    return go(Pc::claim_load);
  }

  const Case& case_;
  const Protocol& rules_;
  State& state_;
  const std::size_t me_;
  Thread& t_;
  const char* fault_ = nullptr;
};

}  // namespace weir::slot_model
