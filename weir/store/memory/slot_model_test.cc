// The memory table's slot protocol, model-checked: every interleaving of a few threads, one atomic access at a time.
// Modelled: groups whose record {count, page ids} is stored word by word; slots {word, fp}; spend, insert, reset,
// eviction, growth inside an insert, rebuilds, the horizon, the free list of pages and their clearing and reuse.
// Checked: each acknowledged spend against a reference bucket when it takes effect (burst kept, nothing lost, nothing
// charged to another key); denials too; one live slot a key; at the end every TAT, page and lock; no deadlock; from
// every state a way to the end. An evicted key starts anew, and evictions are counted. Not modelled: weak memory (every
// access is sequentially consistent), the probe order within a group, undo and refund, quotas, crashes, more than four
// threads, four pages and three keys, hashes that collide. A key's word read under another key is noise; the model
// takes the noise that does the most harm.
#include "weir/store/memory/slot_model_explore.h"

#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <string>

namespace weir::slot_model {
namespace {

constexpr std::size_t kAnn = 1;
constexpr std::size_t kBob = 2;
constexpr std::size_t kCem = 3;

struct Placed {
  std::size_t key, tat, page, slot;
};

// One group per entry of `records`.
State table(const std::vector<std::vector<std::size_t>>& records, const std::vector<std::size_t>& free_pages,
            const std::vector<Placed>& placed, std::size_t horizon = 0) {
  State state;
  for (std::size_t g = 0; g < records.size(); ++g) {
    state.groups[g].count = small(records[g].size());
    for (std::size_t p = 0; p < records[g].size(); ++p) {
      state.groups[g].pages[p] = small(records[g][p]);
    }
  }
  for (const Placed& at : placed) {
    state.pages[at.page][at.slot] = {make_word({}, at.key, at.tat), static_cast<Word>(at.key)};
    state.truth[at.key] = small(at.tat);
  }
  for (const std::size_t page : free_pages) state.free_pages = small(state.free_pages | 1u << page);
  state.horizon = small(horizon);
  return state;
}

// Readings of the clock are 5 unless old readings are the point; a bucket holds 2, so a TAT of 7 is an empty one.
std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&all](const char* name, State start, std::vector<std::vector<Op>> programs) -> Case& {
    all.push_back({name, std::move(programs), start});
    return all.back();
  };
  const Op ann = spend(kAnn, 5);
  const Op bob = spend(kBob, 5);
  const Op cem = spend(kCem, 5);

  add("three spenders of one key during a rebuild", table({{0}}, {1}, {{kAnn, 5, 0, 0}}),
      {{ann}, {ann}, {ann}, {rebuild(0, 1)}});
  add("a spender during two rebuilds of its group", table({{0}}, {1, 2}, {{kAnn, 6, 0, 0}}),
      {{ann, ann}, {rebuild(0, 1)}, {rebuild(0, 1)}});
  add("a record read torn while the group grows and shrinks", table({{0}}, {1, 2}, {{kAnn, 6, 0, 0}, {kBob, 6, 0, 1}}),
      {{ann}, {bob}, {rebuild(0, 2), rebuild(0, 1)}})
      .slots = 2;
  add("a new key while the group grows and shrinks", table({{0}}, {1, 2}, {{kAnn, 6, 0, 0}}),
      {{ann}, {bob}, {rebuild(0, 2), rebuild(0, 2)}})
      .slots = 2;
  add("two groups exchange a page that holds equal TATs", table({{0}, {1}}, {2}, {{kAnn, 6, 0, 0}, {kBob, 6, 1, 0}}),
      {{ann}, {bob}, {rebuild(0, 1)}, {rebuild(1, 1), rebuild(1, 1)}})
      .group_of[kBob] = 1;
  add("three inserts of one key", table({{0}}, {}, {}), {{ann}, {ann}, {ann}}).slots = 2;
  add("two keys inserted at once", table({{0}}, {}, {}), {{ann}, {ann}, {bob}}).slots = 2;
  add("inserts that grow the group", table({{0}}, {1, 2}, {{kAnn, 6, 0, 0}}), {{ann}, {bob}, {bob}});
  add("inserts of one key during a rebuild", table({{0}}, {1}, {{kBob, 6, 0, 0}}), {{ann}, {ann}, {rebuild(0, 1)}})
      .slots = 2;
  add("a dead slot is claimed while its key is revived", table({{0}}, {1, 2}, {{kAnn, 4, 0, 0}}, 5),
      {{spend(kAnn, 4)}, {spend(kAnn, 4)}, {spend(kBob, 6)}});
  add("a rebuild drops a dead key that is revived", table({{0}}, {1}, {{kAnn, 4, 0, 0}}, 5),
      {{spend(kAnn, 4)}, {spend(kAnn, 4)}, {rebuild(0, 1)}});
  add("an old reading after the horizon was raised", table({{0}}, {1}, {{kAnn, 4, 0, 0}}),
      {{spend(kAnn, 2)}, {raise_horizon(5), rebuild(0, 1)}, {spend(kAnn, 4)}});
  add("an old reading of a key forgotten since its miss", table({{0}}, {1}, {}),
      {{spend(kAnn, 2)}, {spend(kAnn, 2), spend(kAnn, 2), raise_horizon(5), rebuild(0, 1)}});
  add("a reset against spends and a rebuild", table({{0}}, {1}, {{kAnn, 7, 0, 0}}),
      {{ann, ann}, {reset(kAnn, 5)}, {rebuild(0, 1)}});
  add("a reset of a key that is being inserted", table({{0}}, {}, {}), {{ann, ann}, {reset(kAnn, 5)}, {ann}});
  Case& evicted = add("an eviction against spends", table({{0}}, {}, {{kAnn, 6, 0, 0}}), {{ann}, {ann}, {bob}});
  evicted.evict = true;
  Case& fight = add("three keys fight for one slot", table({{0}}, {}, {{kAnn, 6, 0, 0}}), {{ann}, {bob}, {cem}});
  fight.evict = true;
  Case& both = add("an eviction against spends and a rebuild", table({{0}}, {1}, {{kAnn, 6, 0, 0}}),
                   {{ann}, {bob}, {rebuild(0, 1)}});
  both.evict = true;
  return all;
}

// The same, with more of everything at once; only the protocol as it is meant to be is put through these.
std::vector<Case> larger_cases() {
  std::vector<Case> all;
  const Op ann = spend(kAnn, 5);
  const Op bob = spend(kBob, 5);
  const Op cem = spend(kCem, 5);
  const std::vector<Placed> one = {{kAnn, 6, 0, 0}};
  const std::vector<Placed> two_groups = {{kAnn, 6, 0, 0}, {kBob, 6, 1, 0}};
  all.push_back({"two keys spent while one thread grows and one shrinks",
                 {{ann, ann}, {bob}, {rebuild(0, 2)}, {rebuild(0, 1)}},
                 table({{0}}, {1, 2}, {{kAnn, 5, 0, 0}, {kBob, 6, 0, 1}})});
  all.back().slots = 2;
  all.push_back({"two groups exchange pages again and again",
                 {{ann, ann}, {bob}, {rebuild(0, 1), rebuild(0, 1)}, {rebuild(1, 1), rebuild(1, 1)}},
                 table({{0}, {1}}, {2}, two_groups)});
  all.back().group_of[kBob] = 1;
  all.push_back({"growth, old readings and a raised horizon",
                 {{spend(kAnn, 4)}, {spend(kBob, 6)}, {raise_horizon(5), rebuild(0, 2)}, {spend(kAnn, 6)}},
                 table({{0}}, {1, 2, 3}, {{kAnn, 4, 0, 0}})});
  all.push_back({"a reset, spends and two rebuilds",
                 {{ann, ann}, {reset(kAnn, 5)}, {ann}, {rebuild(0, 1), rebuild(0, 1)}},
                 table({{0}}, {1}, one)});
  all.push_back({"evictions in two groups that exchange a page",
                 {{ann}, {bob}, {cem}, {rebuild(0, 1), rebuild(1, 1)}},
                 table({{0}, {1}}, {2}, two_groups)});
  all.back().group_of[kBob] = 1;
  all.back().evict = true;
  all.push_back(
      {"three keys in a group that must grow", {{ann, bob}, {bob, cem}, {cem, ann}}, table({{0}}, {1, 2, 3}, one)});
  all.back().slots = 2;
  all.push_back({"three spenders of one key during two rebuilds",
                 {{ann}, {ann}, {ann}, {rebuild(0, 1), rebuild(0, 1)}},
                 table({{0}}, {1, 2}, {{kAnn, 5, 0, 0}})});
  return all;
}

void print(const char* what, const Finding& finding) {
  std::cout << "[  model   ] " << what << ": " << finding.states << " states, " << finding.ends << " ends, "
            << finding.evictions << " evictions at most";
  if (finding.fault != nullptr) std::cout << "; " << finding.fault;
  std::cout << std::endl;
}

TEST(SlotModel, HoldsInEveryInterleavingOfEveryCase) {
  for (const Case& scenario : cases()) {
    const Finding finding = explore(scenario, {});
    print(scenario.name, finding);
    EXPECT_EQ(finding.fault, nullptr) << scenario.name << '\n' << finding.trace;
    EXPECT_GT(finding.ends, 0u) << scenario.name;
  }
}

TEST(SlotModel, HoldsInEveryInterleavingOfTheLargerCases) {
  for (const Case& scenario : larger_cases()) {
    const Finding finding = explore(scenario, {});
    print(scenario.name, finding);
    EXPECT_EQ(finding.fault, nullptr) << scenario.name << '\n' << finding.trace;
    EXPECT_GT(finding.ends, 0u) << scenario.name;
  }
}

TEST(SlotModel, HoldsInEachVariantThatShouldNotMatter) {
  const std::vector<std::pair<const char*, bool Protocol::*>> variants = {
      {"old pages are free before the record is stored", &Protocol::free_after_publish},
      {"the record's count is stored before its pages", &Protocol::pages_before_count},
      {"a page is cleared fingerprint first", &Protocol::zero_word_first},
      {"a key found under the lock is spent after unlocking", &Protocol::spend_under_lock},
  };
  for (const auto& [name, rule] : variants) {
    Protocol protocol;
    protocol.*rule = false;
    Finding sum;
    for (const Case& scenario : cases()) {
      const Finding finding = explore(scenario, protocol);
      EXPECT_EQ(finding.fault, nullptr) << name << ": " << scenario.name << ": " << finding.fault << '\n'
                                        << finding.trace;
      sum.states += finding.states;
      sum.ends += finding.ends;
      sum.evictions = std::max(sum.evictions, finding.evictions);
    }
    print(name, sum);
  }
}

struct Mutant {
  const char* name;
  bool Protocol::*rule;
  const char* harm;  // what it must be convicted of
};

constexpr Mutant kMutants[] = {
    {"no salt", &Protocol::salt, "one key's charge went to another key's bucket"},
    {"no insert lock", &Protocol::insert_lock, "an acknowledged charge was lost"},
    {"no mover lock", &Protocol::mover_lock, "a live bucket was forgotten"},
    {"no moving mark", &Protocol::mark, "an acknowledged charge was lost"},
    {"no moving mark on dead slots", &Protocol::mark_dead, "a live bucket was forgotten"},
    {"fingerprint not read again", &Protocol::reread_fp, "one key's charge went to another key's bucket"},
    {"miss believed without the lock", &Protocol::search_again, "an acknowledged charge was lost"},
    {"dead slot claimed by a plain store", &Protocol::claim_by_swap, "a live bucket was forgotten"},
    {"victim evicted by a plain store", &Protocol::evict_by_swap, "a live bucket was forgotten"},
    {"miss decided at now", &Protocol::decide_at_horizon, "a key was admitted beyond its burst"},
    {"horizon loaded before the lock", &Protocol::horizon_under_lock, "a key was admitted beyond its burst"},
    {"unlocked before the record is stored", &Protocol::unlock_after_publish, "a page was freed twice"},
    {"reset stores 0", &Protocol::reset_keeps_word, "livelock: the threads spin for ever"},
};

TEST(SlotModel, FindsEveryMutantByTheHarmItDoes) {
  for (const Mutant& mutant : kMutants) {
    Protocol protocol;
    protocol.*mutant.rule = false;
    std::size_t states = 0;
    std::size_t finders = 0;
    std::set<std::string> harms;
    for (const Case& scenario : cases()) {
      const Finding finding = explore(scenario, protocol, false);
      states += finding.states;
      if (finding.fault == nullptr) continue;
      ++finders;
      harms.insert(finding.fault);
    }
    EXPECT_TRUE(harms.count(mutant.harm)) << mutant.name << " survived";
    std::cout << "[  mutant  ] " << mutant.name << ": found in " << finders << " cases, " << states << " states;";
    for (const std::string& harm : harms) std::cout << ' ' << harm << ';';
    std::cout << std::endl;
  }
}

// Known: the word does not say whose it is, so a spender that reads Ann's fingerprint, Bob's word and Ann's fingerprint
// takes noise for Ann's TAT, and if Bob's very word is back by then its CAS succeeds. For that the slot must change
// hands three times, once in each gap between four neighbouring accesses, and the noise must not lie ahead of now:
// noise far ahead is a wrong denial and writes nothing. A CAS of 16 bytes has no such hole.
std::vector<Case> holes() {
  const Op ann = spend(kAnn, 5);
  const Op bob = spend(kBob, 5);
  Case evictions{
      "a slot evicted three times during one spend", {{ann}, {bob, ann, bob}}, table({{0}}, {}, {{kAnn, 6, 0, 0}})};
  evictions.evict = true;
  Case rebuilds{"a page that six rebuilds pass on during one spend",
                {{ann}, {rebuild(0, 1), rebuild(1, 1), rebuild(1, 1), rebuild(0, 1), rebuild(0, 1), rebuild(1, 1)}},
                table({{0}, {1}}, {2}, {{kAnn, 6, 0, 0}, {kBob, 6, 1, 0}})};
  rebuilds.group_of[kBob] = 1;
  return {evictions, rebuilds};
}

TEST(SlotModel, KnowsTheHoleOfASlotThatComesBackTwiceAndThatA16ByteSwapClosesIt) {
  for (Case& scenario : holes()) {
    const Finding charged = explore(scenario, {});
    print(scenario.name, charged);
    EXPECT_STREQ(charged.fault, "one key's charge went to another key's bucket") << scenario.name;
    scenario.noise = 0xff;
    EXPECT_STREQ(explore(scenario, {}).fault, "a key was denied that had room") << scenario.name;
    for (const std::size_t noise : {0x00, 0xff}) {
      scenario.noise = noise;
      Protocol both;
      both.swap_both = true;
      const Finding closed = explore(scenario, both);
      EXPECT_EQ(closed.fault, nullptr) << scenario.name << '\n' << closed.trace;
    }
  }
}

TEST(SlotModel, A16ByteSwapNeedsNeitherSaltNorASecondLookAtTheFingerprint) {
  Protocol both;
  both.swap_both = true;
  both.salt = both.reread_fp = false;
  std::vector<Case> all = cases();
  for (Case& scenario : holes()) all.push_back(scenario);
  std::size_t states = 0;
  for (const Case& scenario : all) {
    const Finding finding = explore(scenario, both);
    EXPECT_EQ(finding.fault, nullptr) << scenario.name << '\n' << finding.trace;
    states += finding.states;
  }
  std::cout << "[  model   ] a CAS of 16 bytes: " << states << " states" << std::endl;
}

TEST(SlotModel, FindsADeadlock) {
  Case scenario{"a lock whose holder is gone", {{spend(kAnn, 5)}}, table({{0}}, {}, {})};
  scenario.start.groups[0].lock = kThreads;
  EXPECT_STREQ(explore(scenario, {}).fault, "deadlock: no thread can move");
}

// A copy can be spent on as soon as it is written, by whoever still has its page from the time before.
TEST(SlotModel, FindsThatARebuildMustNotGiveUpOnceItHasCopied) {
  const Case scenario{"a rebuild that gives up",
                      {{spend(kAnn, 5)}, {rebuild(0, 1), abandon(0, 1)}},
                      table({{0}}, {1}, {{kAnn, 6, 0, 0}})};
  const Finding finding = explore(scenario, {});
  print(scenario.name, finding);
  EXPECT_STREQ(finding.fault, "a key's TAT is not what its acknowledged spends say");
}

// The dead may be revived until they are marked: new pages need room for every slot in use, or be sized after marking.
TEST(SlotModel, FindsThatCountingTheLiveBeforeMarkingMakesTheNewPagesTooSmall) {
  const Case scenario{"a rebuild sized for the live",
                      {{spend(kBob, 4)}, {rebuild(0, 1)}},
                      table({{0, 1}}, {2}, {{kAnn, 6, 0, 0}, {kBob, 4, 1, 0}}, 5)};
  const Finding finding = explore(scenario, {});
  print(scenario.name, finding);
  EXPECT_STREQ(finding.fault, "the new pages overflowed");
}

}  // namespace
}  // namespace weir::slot_model
