// The memory table's slot protocol, model-checked: every interleaving of a few threads, one atomic access at a time.
// Modeled: groups whose record is one word {pages, bank, version} and two banks of page ids; slots {word, fp}; spend,
// insert, reset, eviction (for the bound, and in a group that cannot grow), growth inside an insert, rebuilds, rebuilds
// that get no pages, the horizon, the count of buckets, the free list of pages and their clearing and reuse.
// Checked: each acknowledged spend against a reference bucket when it takes effect (burst kept, nothing lost, nothing
// charged to another key); denials and resets that found nothing; one live slot per key; at the end every TAT, page,
// lock and count; no deadlock; the end is reachable from every state. An evicted key starts full, and evictions are
// counted.
// Not modeled: weak memory (every access is sequentially consistent), homes other than the first line, undo and refund,
// quotas, crashes, more than four threads, four pages and three keys, hashes that collide, versions that wrap. A word
// decoded with another key's salt is noise; the model uses the most harmful noise.
#include <gtest/gtest.h>

#include <iostream>
#include <string_view>

#include "weir/store/memory/slot_model_cases.h"
#include "weir/store/memory/slot_model_explore.h"

namespace weir::slot_model::slot_model_test {
namespace {

void print(const char* what, const Finding& finding) {
  std::cout << "[  model   ] " << what << ": " << finding.states << " states, " << finding.ends << " ends, "
            << finding.evictions << " evictions at most";
  if (finding.fault != nullptr) std::cout << "; " << finding.fault;
  std::cout << std::endl;
}

void expect_sound(const std::vector<Case>& cases, const Protocol& protocol) {
  for (const Case& scenario : cases) {
    const Finding finding = explore(scenario, protocol);
    print(scenario.name, finding);
    EXPECT_EQ(finding.fault, nullptr) << scenario.name << ": " << finding.fault << '\n' << finding.trace;
    EXPECT_GT(finding.ends, 0u) << scenario.name;
  }
}

TEST(SlotModel, HoldsInEveryInterleavingOfEveryCase) {
  expect_sound(small_cases(), {});
}

TEST(SlotModel, HoldsInEveryInterleavingOfTheLargerCases) {
  expect_sound(larger_cases(), {});
}

TEST(SlotModel, HoldsInEachVariantThatShouldNotMatter) {
  const std::vector<std::pair<const char*, bool Protocol::*>> variants = {
      {"the version goes up after the CAS that claims a slot", &Protocol::bump_first},
      {"an evicted key takes the first dead slot", &Protocol::reclaim_own},
      {"a page is cleared fingerprint first", &Protocol::zero_word_first},
      {"a slot is copied fingerprint first", &Protocol::copy_word_first},
  };
  for (const auto& [name, rule] : variants) {
    Protocol protocol;
    protocol.*rule = false;
    Finding sum;
    for (const Case& scenario : small_cases()) {
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
  const char* harm;  // the fault it must cause
};

// There is no mutant for a record stored in the wrong order (it is one word), for a 16-byte CAS (the version does its
// work) or for spending under the lock (a key found there is spent after unlocking). Giving old pages back before the
// record is stored does harm, because a miss outside the lock relies on that order.
constexpr Mutant kMutants[] = {
    {"no salt", &Protocol::salt, "one key's charge went to another key's bucket"},
    {"no insert lock", &Protocol::insert_lock, "a live bucket was forgotten"},
    {"no mover lock", &Protocol::mover_lock, "a live bucket was forgotten"},
    {"no moving mark", &Protocol::mark, "an acknowledged charge was lost"},
    {"no moving mark on dead slots", &Protocol::mark_dead, "a live bucket was forgotten"},
    {"fingerprint not read again", &Protocol::reread_fp, "one key's charge went to another key's bucket"},
    {"miss believed without the lock", &Protocol::search_again, "a key was admitted beyond its burst"},
    {"miss of a reset believed without the version", &Protocol::look_again,
     "a reset missed a bucket that was there all the time"},
    {"dead slot claimed by a plain store", &Protocol::claim_by_swap, "a live bucket was forgotten"},
    {"victim evicted by a plain store", &Protocol::evict_by_swap, "a live bucket was forgotten"},
    {"dead slot counted on without being evicted", &Protocol::evict_dead, "no slot was left for a key"},
    {"page ids in use written over", &Protocol::two_banks, "a reset missed a bucket that was there all the time"},
    {"evicted key comes back without the lock", &Protocol::return_under_lock, "the buckets are miscounted"},
    {"miss decided at now", &Protocol::decide_at_horizon, "a key was admitted beyond its burst"},
    {"horizon loaded before the lock", &Protocol::horizon_under_lock, "a key was admitted beyond its burst"},
    {"unlocked before the record is stored", &Protocol::unlock_after_publish, "a page was freed twice"},
    {"old pages free before the record is stored", &Protocol::free_after_publish,
     "a reset missed a bucket that was there all the time"},
    {"one slot left marked when there are no pages", &Protocol::unmark_all, "a live bucket was forgotten"},
    {"new pages chosen before marking", &Protocol::size_after_mark, "the new pages overflowed"},
    {"reset stores 0", &Protocol::reset_keeps_word, "the buckets are miscounted"},
};

// Explores the cases until one shows the mutant's fault.
bool convicted(const Mutant& mutant, const std::vector<Case>& cases) {
  Protocol protocol;
  protocol.*mutant.rule = false;
  std::size_t states = 0;
  for (const Case& scenario : cases) {
    const Finding finding = explore(scenario, protocol, false);
    states += finding.states;
    if (finding.fault == nullptr || std::string_view(finding.fault) != mutant.harm) continue;
    std::cout << "[  mutant  ] " << mutant.name << ": " << states << " states; " << scenario.name << ": "
              << finding.fault << std::endl;
    return true;
  }
  return false;
}

TEST(SlotModel, FindsEveryMutantByTheHarmItDoes) {
  for (const Mutant& mutant : kMutants) EXPECT_TRUE(convicted(mutant, small_cases())) << mutant.name << " survived";
}

// A word does not tell which key it belongs to. A spender that reads Ann's fingerprint, Bob's word and again Ann's
// fingerprint mistakes noise for Ann's TAT, and its CAS succeeds if exactly Bob's word is back by then. For that the
// slot must change hands three times, once in each gap between four consecutive accesses. The version detects it.
TEST(SlotModel, TheVersionTellsThatASlotChangedHandsTwice) {
  for (Case& scenario : changes_of_hands()) {
    for (const std::size_t noise : {0x00, 0x01, 0xff}) {
      scenario.noise = noise;
      const Finding finding = explore(scenario, {});
      print(scenario.name, finding);
      EXPECT_EQ(finding.fault, nullptr) << scenario.name << ": " << finding.fault << '\n' << finding.trace;
    }
  }
}

TEST(SlotModel, WithoutTheVersionASlotThatChangesHandsTwiceIsTheWrongOne) {
  constexpr const char* kCharged = "one key's charge went to another key's bucket";
  constexpr const char* kDenied = "a key was denied that had room";
  const std::vector<Case> past = changes_of_hands();
  std::vector<Case> ahead = past;
  for (Case& scenario : ahead) scenario.noise = 0xff;
  for (std::size_t i = 0; i < past.size(); ++i) {
    EXPECT_TRUE(convicted({"no version", &Protocol::version, kCharged}, {past[i]})) << past[i].name;
    EXPECT_TRUE(convicted({"no version", &Protocol::version, kDenied}, {ahead[i]})) << past[i].name;
  }
  EXPECT_TRUE(convicted({"claims do not bump", &Protocol::bump_on_claim, kCharged}, {past[0]}));
  EXPECT_TRUE(convicted({"rebuilds do not bump", &Protocol::bump_on_rebuild, kCharged}, {past[1]}));
}

TEST(SlotModel, FindsADeadlock) {
  Case scenario{"a lock whose holder is gone", {{spend(kAnn, 5)}}, table({{0}}, {}, {})};
  scenario.start.groups[0].lock = kThreads;
  EXPECT_STREQ(explore(scenario, {}).fault, "deadlock: no thread can move");
}

// A spender that still has the page from an earlier record can spend from a copy as soon as it is written.
TEST(SlotModel, FindsThatARebuildMustNotGiveUpOnceItHasCopied) {
  const Case scenario{"a rebuild that gives up",
                      {{spend(kAnn, 5)}, {rebuild(0, 1), abandon(0, 1)}},
                      table({{0}}, {1}, {{kAnn, 6, 0, 0}})};
  const Finding finding = explore(scenario, {});
  print(scenario.name, finding);
  EXPECT_STREQ(finding.fault, "a key's TAT is not what its acknowledged spends say");
}

}  // namespace
}  // namespace weir::slot_model::slot_model_test
