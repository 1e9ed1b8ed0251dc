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

inline constexpr std::size_t kPages = 4;  // in the whole model
inline constexpr std::size_t kSlots = 2;  // of a page, at most
inline constexpr std::size_t kGroups = 2;
inline constexpr std::size_t kGroupPages = 2;  // of a group, at most
inline constexpr std::size_t kKeys = 4;        // key 0 is none
inline constexpr std::size_t kThreads = 4;

using Word = std::uint16_t;  // 0 free | bit 15 BUSY | bits 8-11 the salt: whose TAT this is | bits 0-7 TAT
using Small = std::uint8_t;
inline constexpr Word kBusy = 0x8000;

constexpr Small small(std::size_t value) {
  return static_cast<Small>(value);
}

struct Slot {
  Word word = 0;
  Word fp = 0;
};

struct Group {
  Small count = 0;  // the record: how many pages, and which; each an atomic of its own
  std::array<Small, kGroupPages> pages{};
  Small lock = 0;  // 0 free, else the holding thread + 1
};

// Where a thread is. Each is one atomic access to shared memory (or reads more that cannot change meanwhile): a thread
// may be interrupted between any two.
enum class Pc : Small {
  done,
  load_count,
  load_page,
  scan,
  load_word,
  load_fp,
  reload_word,
  swap_word,
  wait_for_lock,
  lock,
  unlock,
  unlock_and_retry,
  load_horizon,
  claim_load,
  claim_swap,
  evict_load,
  evict_swap,
  store_fp,
  store_word,
  mover_lock,
  take_page,
  zero_word,
  zero_fp,
  mark_load,
  mark_swap,
  copy_fp,
  copy_word,
  publish_page,
  publish_count,
  free_page,
  unmark,
  raise_horizon,
};

constexpr const char* name(Pc pc) {
  constexpr std::array kNames = {"done",       "load_count",       "load_page",    "scan",          "load_word",
                                 "load_fp",    "reload_word",      "swap_word",    "wait_for_lock", "lock",
                                 "unlock",     "unlock_and_retry", "load_horizon", "claim_load",    "claim_swap",
                                 "evict_load", "evict_swap",       "store_fp",     "store_word",    "mover_lock",
                                 "take_page",  "zero_word",        "zero_fp",      "mark_load",     "mark_swap",
                                 "copy_fp",    "copy_word",        "publish_page", "publish_count", "free_page",
                                 "unmark",     "raise_horizon"};
  return kNames[static_cast<std::size_t>(pc)];
}

struct Thread {
  Pc pc = Pc::done;
  Small op = 0;      // index into its program
  Small locked = 0;  // is this the search, spend or claim under the group lock?
  Small count = 0;   // pages of the record as loaded
  Small index = 0;   // which page of the record is looked at
  Small page = 0;    // its id
  Small slot = 0;
  Small horizon = 0;  // as loaded
  Small taken = 0;    // rebuild: new pages taken so far
  Small from = 0;     // rebuild: cursor over the old slots, or over pages
  Small into = 0;     // rebuild: cursor over the new slots
  Small olds = 0;     // rebuild: number of old pages
  std::array<Small, kGroupPages> old_pages{};
  std::array<Small, kGroupPages> new_pages{};
  Word word = 0;  // as loaded
  Word want = 0;  // to be written
};

struct State {
  std::array<std::array<Slot, kSlots>, kPages> pages{};
  std::array<Group, kGroups> groups{};
  std::array<Thread, kThreads> threads{};
  std::array<Small, kKeys> truth{};  // the TAT each key should have, by the acknowledged spends; 0: a full bucket
  Small free_pages = 0;              // one bit each
  Small horizon = 0;
  Small evictions = 0;
  Small unused = 0;
};
static_assert(std::has_unique_object_representations_v<State>, "states are hashed and compared by their bytes");

// What one thread does, in order.
struct Op {
  enum class Kind : Small { spend, reset, rebuild, abandon, raise_horizon };
  Kind kind;
  std::size_t key;    // spend, reset; rebuild, abandon: the group
  std::size_t now;    // the thread's reading of the clock; raise_horizon: the new horizon
  std::size_t pages;  // rebuild, abandon: how many the group shall have
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
// A rebuild that gives up after copying: marks are taken off and the new pages given back. Not part of the protocol.
constexpr Op abandon(std::size_t group, std::size_t pages) {
  return {Op::Kind::abandon, group, 0, pages};
}
constexpr Op raise_horizon(std::size_t horizon) {
  return {Op::Kind::raise_horizon, 0, horizon, 0};
}

// The protocol, and what may be broken or varied in it. The default is the protocol as it is meant to be.
struct Protocol {
  bool salt = true;                  // the word carries its key
  bool insert_lock = true;           // inserts hold the group lock
  bool mover_lock = true;            // rebuilds hold it
  bool mark = true;                  // a slot is marked BUSY before it is copied
  bool mark_dead = true;             // a dropped slot is marked too
  bool reread_fp = true;             // the fingerprint is read again after the word
  bool search_again = true;          // a miss is believed only under the lock
  bool claim_by_swap = true;         // a dead slot is claimed by CAS from its exact word
  bool evict_by_swap = true;         // a victim too
  bool decide_at_horizon = true;     // a miss decides at max(now, horizon)
  bool horizon_under_lock = true;    // and loads the horizon after taking the lock
  bool unlock_after_publish = true;  // a rebuild keeps the lock until the record is stored
  bool reset_keeps_word = true;      // a reset stores a TAT, never 0
  bool swap_both = false;            // word and fingerprint are compared together, by a CAS of 16 bytes
  bool free_after_publish = true;    // variants from here on: sound either way
  bool pages_before_count = true;    // the order in which the record is stored
  bool zero_word_first = true;       // the order in which a page is cleared
  bool spend_under_lock = true;      // a key found under the lock is spent there, or after unlocking
};

struct Case {
  const char* name;
  std::vector<std::vector<Op>> programs;
  State start;
  std::size_t window = 2;  // burst 2, interval 1: every spend costs 1
  std::size_t slots = 1;   // of a page
  bool evict = false;      // a full group evicts; else it grows by a page
  std::size_t noise = 0;   // what another key's word decodes to: an instant long past, or far ahead
  std::array<Small, kKeys> group_of{};
};

constexpr bool is_busy(Word word) {
  return (word & kBusy) != 0;
}
constexpr Word make_word(const Protocol& protocol, std::size_t key, std::size_t tat) {
  return static_cast<Word>((protocol.salt ? key << 8 : 0) | tat);
}
// Another key's word, freed of the wrong salt, is noise.
constexpr std::size_t tat_of(const Protocol& protocol, Word word, std::size_t key, std::size_t noise) {
  return protocol.salt && ((word >> 8) & 0xf) != key ? noise : word & 0xff;
}

}  // namespace weir::slot_model
