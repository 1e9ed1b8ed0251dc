// The cases in which the model of the slot protocol is explored. Test only.
#pragma once

#include <utility>
#include <vector>

#include "weir/store/memory/slot_model_state.h"

namespace weir::slot_model {

inline constexpr std::size_t kAnn = 1;
inline constexpr std::size_t kBob = 2;
inline constexpr std::size_t kCem = 3;

struct Placed {
  std::size_t key, tat, page, slot;  // TAT 0: evicted
};

// Creates one group per entry of `records`. REQUIRES: a group's placed slots come before its unused ones.
inline State table(const std::vector<std::vector<std::size_t>>& records, const std::vector<std::size_t>& free_pages,
                   const std::vector<Placed>& placed, std::size_t horizon = 0) {
  State state;
  for (const Placed& at : placed) {
    state.pages[at.page][at.slot] = {make_word({}, at.key, at.tat), static_cast<Word>(at.key)};
    state.truth[at.key] = small(at.tat);
    if (at.tat != 0) ++state.buckets;
  }
  for (std::size_t g = 0; g < records.size(); ++g) {
    Group& group = state.groups[g];
    group.shape.bits = static_cast<Word>(records[g].size());
    for (std::size_t p = 0; p < records[g].size(); ++p) {
      group.pages[0][p] = small(records[g][p]);
      for (const Slot& slot : state.pages[records[g][p]]) {
        if (slot.word == 0) continue;
        ++group.used;
        if ((slot.word & 0xff) != 0) ++group.counted;
      }
    }
  }
  for (const std::size_t page : free_pages) state.free_pages = small(state.free_pages | 1u << page);
  state.horizon = small(horizon);
  return state;
}

// Clock readings are 5 unless the case is about old readings. The burst is 2, so a TAT of 7 is an empty bucket.
inline std::vector<Case> small_cases() {
  std::vector<Case> all;
  const auto add = [&all](const char* name, State start, std::vector<std::vector<Op>> programs) -> Case& {
    all.push_back({name, std::move(programs), start});
    return all.back();
  };
  const Op ann = spend(kAnn, 5);
  const Op bob = spend(kBob, 5);
  const Op cem = spend(kCem, 5);
  const std::vector<Placed> one = {{kAnn, 6, 0, 0}};

  add("a spender during two rebuilds of its group", table({{0}}, {1, 2}, one),
      {{ann, ann}, {rebuild(0, 1)}, {rebuild(0, 1)}});
  add("three inserts of one key", table({{0}}, {}, {}), {{ann}, {ann}, {ann}}).slots = 2;
  add("two keys inserted at once", table({{0}}, {}, {}), {{ann}, {ann}, {bob}}).slots = 2;
  add("inserts that grow the group", table({{0}}, {1, 2}, one), {{ann}, {bob}, {bob}});
  add("inserts of one key during a rebuild", table({{0}}, {1}, {{kBob, 6, 0, 0}}), {{ann}, {ann}, {rebuild(0, 1)}})
      .slots = 2;
  add("a rebuild that gets no pages", table({{0}}, {1}, {{kAnn, 6, 0, 0}, {kBob, 6, 0, 1}}),
      {{ann}, {bob}, {refused(0), rebuild(0, 1)}})
      .slots = 2;
  add("an insert whose group gets no pages", table({{0}}, {}, one), {{ann}, {bob}, {refused(0)}});
  add("a dead slot is claimed while its key is revived", table({{0}}, {1, 2}, {{kAnn, 4, 0, 0}}, 5),
      {{spend(kAnn, 4)}, {spend(kAnn, 4)}, {spend(kBob, 6)}});
  add("a dead key is revived in a group without room", table({{0}}, {}, {{kAnn, 4, 0, 0}}, 5),
      {{spend(kAnn, 4)}, {spend(kAnn, 4)}, {spend(kBob, 6)}});
  add("a dead slot is claimed where another is free", table({{0}}, {}, {{kAnn, 4, 0, 0}}, 5),
      {{spend(kAnn, 4)}, {spend(kAnn, 4)}, {spend(kBob, 6)}})
      .slots = 2;
  add("a rebuild drops a dead key that is revived", table({{0}}, {1}, {{kAnn, 4, 0, 0}}, 5),
      {{spend(kAnn, 4)}, {spend(kAnn, 4)}, {rebuild(0, 1)}});
  add("a rebuild sized for the live while a dead key is revived",
      table({{0, 1}}, {2, 3}, {{kAnn, 6, 0, 0}, {kBob, 4, 1, 0}}, 5), {{spend(kBob, 4)}, {ann}, {rebuild(0, 1)}});
  add("an old reading after the horizon was raised", table({{0}}, {1}, {{kAnn, 4, 0, 0}}),
      {{spend(kAnn, 2)}, {raise_horizon(5), rebuild(0, 1)}, {spend(kAnn, 4)}});
  add("an old reading of a key forgotten since its miss", table({{0}}, {1}, {}),
      {{spend(kAnn, 2)}, {spend(kAnn, 2), spend(kAnn, 2), raise_horizon(5), rebuild(0, 1)}});
  add("a horizon raised while slots are claimed and moved", table({{0}}, {1}, {{kAnn, 4, 0, 0}}),
      {{spend(kAnn, 4)}, {spend(kBob, 6)}, {raise_horizon(5)}, {rebuild(0, 1)}})
      .slots = 2;
  add("a reset against spends and a rebuild", table({{0}}, {1}, {{kAnn, 7, 0, 0}}),
      {{ann, ann}, {reset(kAnn, 5)}, {rebuild(0, 1)}});
  add("a reset of a key that is being inserted", table({{0}}, {}, {}), {{ann, ann}, {reset(kAnn, 5)}, {ann}});
  add("a reset of a key whose page goes to another group", table({{0}, {1}}, {2}, {{kAnn, 7, 0, 0}, {kBob, 6, 1, 0}}),
      {{reset(kAnn, 5)}, {rebuild(0, 1)}, {rebuild(1, 1), rebuild(1, 1)}})
      .group_of[kBob] = 1;
  add("an eviction against spends", table({{0}}, {}, one), {{ann}, {ann}, {bob}});
  add("an eviction for the bound against spends", table({{0}}, {}, one), {{ann}, {ann}, {bob}}).slots = 2;
  all.back().bound = 1;
  add("three keys fight for one slot", table({{0}}, {}, one), {{ann}, {bob}, {cem}});
  add("an eviction against spends and a rebuild", table({{0}}, {1}, one), {{ann}, {bob}, {rebuild(0, 1)}});
  add("an eviction against a reset", table({{0}}, {}, {{kAnn, 7, 0, 0}}), {{ann}, {bob}, {reset(kAnn, 5)}});
  add("an evicted key comes back twice at once", table({{0}}, {1}, {{kAnn, 0, 0, 0}}), {{ann}, {ann}, {bob}});
  add("an evicted key comes back where another slot is free", table({{0}}, {}, {{kBob, 0, 0, 0}, {kAnn, 0, 0, 1}}),
      {{ann, ann}, {ann}, {bob}})
      .slots = 2;
  // The expensive cases come last, because the first case that detects a mutant ends its search.
  add("three spenders of one key during a rebuild", table({{0}}, {1}, {{kAnn, 5, 0, 0}}),
      {{ann}, {ann}, {ann}, {rebuild(0, 1)}});
  add("an old record while the group grows and shrinks", table({{0}}, {1, 2}, {{kAnn, 6, 0, 0}, {kBob, 6, 0, 1}}),
      {{ann}, {bob}, {rebuild(0, 2), rebuild(0, 1)}})
      .slots = 2;
  add("a new key while the group grows and shrinks", table({{0}}, {1, 2}, one),
      {{ann}, {bob}, {rebuild(0, 2), rebuild(0, 2)}})
      .slots = 2;
  return all;
}

// Larger cases, with more threads and operations at once. Only the correct protocol is explored in these.
inline std::vector<Case> larger_cases() {
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
  all.push_back({"two groups exchange pages that hold equal TATs",
                 {{ann}, {bob}, {rebuild(0, 1), rebuild(0, 1)}, {rebuild(1, 1)}},
                 table({{0}, {1}}, {2}, two_groups)});
  all.back().group_of[kBob] = 1;
  all.push_back({"growth, old readings and a raised horizon",
                 {{spend(kAnn, 4)}, {spend(kBob, 6)}, {raise_horizon(5), rebuild(0, 1)}, {spend(kAnn, 6)}},
                 table({{0}}, {1, 2}, {{kAnn, 4, 0, 0}})});
  all.push_back({"a reset, spends and two rebuilds",
                 {{ann, ann}, {reset(kAnn, 5)}, {rebuild(0, 1), rebuild(0, 1)}, {rebuild(0, 1)}},
                 table({{0}}, {1}, one)});
  all.push_back({"evictions in two groups that exchange a page",
                 {{ann}, {bob}, {cem}, {rebuild(0, 1), rebuild(1, 1)}},
                 table({{0}, {1}}, {2}, two_groups)});
  all.back().group_of[kBob] = 1;
  all.push_back(
      {"three keys in a group that must grow", {{ann, bob}, {bob, cem}, {cem}}, table({{0}}, {1, 2, 3}, one)});
  all.back().slots = 2;
  all.push_back({"three spenders of one key during two rebuilds",
                 {{ann}, {ann}, {ann}, {rebuild(0, 1), rebuild(0, 1)}},
                 table({{0}}, {1}, {{kAnn, 5, 0, 0}})});
  return all;
}

// The slot that a spender reads goes to another key and comes back, twice, before the spender's CAS: in one case by
// evictions, in the other by rebuilds of two groups that exchange pages.
inline std::vector<Case> changes_of_hands() {
  const Op ann = spend(kAnn, 5);
  const Op bob = spend(kBob, 5);
  Case rebuilds{"a page that six rebuilds pass on during one spend",
                {{ann}, {rebuild(0, 1), rebuild(1, 1), rebuild(1, 1), rebuild(0, 1), rebuild(0, 1), rebuild(1, 1)}},
                table({{0}, {1}}, {2}, {{kAnn, 6, 0, 0}, {kBob, 6, 1, 0}})};
  rebuilds.group_of[kBob] = 1;
  return {
      {"a slot evicted three times during one spend", {{ann}, {bob, ann, bob}}, table({{0}}, {}, {{kAnn, 6, 0, 0}})},
      rebuilds};
}

}  // namespace weir::slot_model
