// The state of the slot protocol's model: small enough to be copied, hashed and compared by its bytes.
// Test only. slot_model_step.h moves it, slot_model_explore.h visits all of it, slot_model_test.cc says what is
// modelled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace weir::slot_model {

inline constexpr std::size_t kPages = 4;  // in total
inline constexpr std::size_t kSlots = 2;  // per page, at most
inline constexpr std::size_t kGroups = 2;
inline constexpr std::size_t kGroupPages = 2;  // per group, at most
inline constexpr std::size_t kKeys = 4;        // key 0 means no key
inline constexpr std::size_t kThreads = 4;

using Word =
    std::uint16_t;  // 0 free | bit 15 BUSY | bit 14 in use | bits 8-11 the salt: its key | bits 0-7 TAT, 0 evicted
using Small = std::uint8_t;
inline constexpr Word kBusy = 0x8000;
inline constexpr Word kInUse = 0x4000;

constexpr Small small(std::size_t value) {
  return static_cast<Small>(value);
}

struct Slot {
  Word word = 0;
  Word fp = 0;
};

// The group's record in one word: the number of pages, their bank, and the version.
struct Shape {
  Word bits = 0;

  constexpr std::size_t pages() const { return bits & 3; }
  constexpr std::size_t bank() const { return bits >> 2 & 1; }
  constexpr Shape bumped() const { return {static_cast<Word>(bits + 8)}; }
  constexpr Shape rebuilt(std::size_t pages, bool other_bank, bool bump) const {
    const Shape next = bump ? bumped() : *this;
    return {static_cast<Word>(((next.bits & ~3u) ^ (other_bank ? 4u : 0u)) | pages)};
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

struct Group {
  Shape shape;
  std::array<std::array<Small, kGroupPages>, 2> pages{};  // both banks
  Small lock = 0;                                         // 0 free, else the holding thread + 1
  Small used = 0;                                         // slots that are not 0, under the lock
  Small counted = 0;                                      // those of them that are counted in State::buckets
  Small unused = 0;
};

// A thread's position. Each is one atomic access to shared memory, or several reads of memory that cannot change
// meanwhile. A thread may be interrupted between any two positions.
enum class Pc : Small {
  done,
  // change(): the request path
  load_shape,
  load_page,
  scan,
  look_again,
  load_word,
  load_fp,
  reload_shape,
  reload_word,
  swap_word,
  wait_for_lock,
  // insert(): under the lock
  lock,
  find_locked,
  found_load,
  load_horizon,
  unlock,
  unlock_and_retry,
  // claim(), evict_near(), claim_dead()
  evict_load,
  evict_swap,
  claim_load,
  claim_judge,
  bump,
  claim_swap,
  late_bump,
  claim_fresh,
  store_fp,
  store_word,
  // rebuild()
  mover_lock,
  mark_load,
  mark_swap,
  mark_judge,
  take_page,
  zero_word,
  zero_fp,
  store_page,
  move_judge,
  copy_word,
  copy_fp,
  publish,
  free_pages,
  unmark,
  raise_horizon,
};

constexpr const char* name(Pc pc) {
  constexpr std::array kNames = {
      "done",         "load_shape",  "load_page",        "scan",          "look_again", "load_word",   "load_fp",
      "reload_shape", "reload_word", "swap_word",        "wait_for_lock", "lock",       "find_locked", "found_load",
      "load_horizon", "unlock",      "unlock_and_retry", "evict_load",    "evict_swap", "claim_load",  "claim_judge",
      "bump",         "claim_swap",  "late_bump",        "claim_fresh",   "store_fp",   "store_word",  "mover_lock",
      "mark_load",    "mark_swap",   "mark_judge",       "take_page",     "zero_word",  "zero_fp",     "store_page",
      "move_judge",   "copy_word",   "copy_fp",          "publish",       "free_pages", "unmark",      "raise_horizon"};
  static_assert(kNames.size() == static_cast<std::size_t>(Pc::raise_horizon) + 1);
  return kNames[static_cast<std::size_t>(pc)];
}

struct Thread {
  Pc pc = Pc::done;
  Small op = 0;      // index into its program
  Small locked = 0;  // it holds the group lock, or a mutant believes it does
  Small absent = 0;  // reset: the bucket was full at some moment since the reset started
  Small index = 0;   // which page of the record is read
  Small page = 0;    // its id
  Small slot = 0;
  Small free = 0;     // 1 + a never-used slot of the page that is read
  Small own = 0;      // claim: the key's own evicted slot is claimed
  Small crammed = 0;  // eviction: the group cannot grow
  Small victim = 0;   // eviction: 1 + page * kSlots + slot
  Small horizon = 0;  // for a miss, as loaded
  Small live = 0;     // rebuild: keys alive when marked
  Small wanted = 0;   // rebuild: number of new pages
  Small taken = 0;    // rebuild: new pages taken so far
  Small from = 0;     // rebuild: cursor over the old slots, or over pages
  Small into = 0;     // rebuild: cursor over the new slots
  Small cut = 0;      // rebuild: the horizon, as loaded
  std::array<Small, kGroupPages> old_pages{};
  std::array<Small, kGroupPages> new_pages{};
  Shape shape;    // as loaded
  Word word = 0;  // as loaded
  Word want = 0;  // to be written
};

struct State {
  std::array<std::array<Slot, kSlots>, kPages> pages{};
  std::array<Group, kGroups> groups{};
  std::array<Thread, kThreads> threads{};
  std::array<Small, kKeys> truth{};  // each key's correct TAT by its acknowledged spends; 0: a full bucket
  Small free_pages = 0;              // one bit each
  Small horizon = 0;
  Small evictions = 0;
  Small buckets = 0;  // the table's count
  std::array<Small, 4> unused{};
};
static_assert(sizeof(State) % 8 == 0);
static_assert(std::has_unique_object_representations_v<State>, "states are hashed and compared by their bytes");

// What one thread does, in order.
struct Op {
  enum class Kind : Small { spend, reset, rebuild, refused, abandon, raise_horizon };
  Kind kind;
  std::size_t key;    // spend, reset: the key; otherwise the group
  std::size_t now;    // the thread's reading of the clock; raise_horizon: the new horizon
  std::size_t pages;  // rebuild, abandon: the least number of new pages
};
constexpr Op spend(std::size_t key, std::size_t now) {
  return {Op::Kind::spend, key, now, 0};
}
constexpr Op reset(std::size_t key, std::size_t now) {
  return {Op::Kind::reset, key, now, 0};
}
constexpr Op rebuild(std::size_t group, std::size_t pages) {
  return {Op::Kind::rebuild, group, 0, pages};
}
// A rebuild that gets no pages.
constexpr Op refused(std::size_t group) {
  return {Op::Kind::refused, group, 0, 1};
}
// A rebuild that gives up after copying: it removes the marks and gives the new pages back. Not part of the protocol.
constexpr Op abandon(std::size_t group, std::size_t pages) {
  return {Op::Kind::abandon, group, 0, pages};
}
constexpr Op raise_horizon(std::size_t horizon) {
  return {Op::Kind::raise_horizon, 0, horizon, 0};
}

// The rules of the protocol, each of which can be broken or varied. The default is the correct protocol.
struct Protocol {
  bool salt = true;                  // the word encodes its key
  bool version = true;               // a reader re-checks the record
  bool bump_on_claim = true;         // the version increases before a slot changes hands
  bool bump_on_rebuild = true;       // and with every rebuild
  bool reread_fp = true;             // the fingerprint is read again after the word
  bool look_again = true;            // a miss outside the lock re-checks the record
  bool search_again = true;          // an insert searches again under the lock
  bool insert_lock = true;           // inserts hold the group lock
  bool mover_lock = true;            // rebuilds hold it
  bool unlock_after_publish = true;  // a rebuild keeps it until the record is stored
  bool free_after_publish = true;    // and only then gives the old pages back
  bool mark = true;                  // a slot is marked BUSY before it is copied
  bool mark_dead = true;             // a dropped slot is marked too
  bool unmark_all = true;            // a rebuild that gets no pages unmarks every slot
  bool size_after_mark = true;       // new pages are chosen by what was alive when marked
  bool claim_by_swap = true;         // a dead slot is claimed by CAS from its exact word
  bool evict_by_swap = true;         // a victim is evicted by CAS too
  bool evict_dead = true;            // a group without room evicts a dead bucket instead of relying on its slot
  bool return_under_lock = true;     // an evicted key comes back under the lock
  bool decide_at_horizon = true;     // a miss decides at max(now, horizon)
  bool horizon_under_lock = true;    // and loads the horizon after taking the lock
  bool reset_keeps_word = true;      // a reset stores a TAT, never 0
  bool two_banks = true;             // a rebuild does not overwrite the page ids in use
  bool bump_first = true;            // variants from here on, correct either way: the version increases before the CAS
  bool reclaim_own = true;           // an evicted key that comes back tries its old slot first
  bool zero_word_first = true;       // the order in which a page is cleared
  bool copy_word_first = true;       // the order in which a slot is copied
};

struct Case {
  const char* name;
  std::vector<std::vector<Op>> programs;
  State start;
  std::size_t window = 2;   // burst 2, interval 1: every spend costs 1
  std::size_t slots = 1;    // per page
  std::size_t bound = 255;  // maximum number of buckets in the table
  std::size_t noise = 1;    // what another key's word decodes to: an instant far in the past or the future
  std::array<Small, kKeys> group_of{};
};

constexpr bool is_busy(Word word) {
  return (word & kBusy) != 0;
}
constexpr Word make_word(const Protocol& protocol, std::size_t key, std::size_t tat) {
  return static_cast<Word>(kInUse | (protocol.salt ? key << 8 : 0) | tat);
}
// A word decoded with another key's salt is noise.
constexpr std::size_t tat_of(const Protocol& protocol, Word word, std::size_t key, std::size_t noise) {
  return protocol.salt && ((word >> 8) & 0xf) != key ? noise : word & 0xff;
}

}  // namespace weir::slot_model
