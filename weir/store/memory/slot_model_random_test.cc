// The model of the slot protocol in random cases, from fixed seeds so that a run can be repeated.
#include <gtest/gtest.h>

#include <iostream>

#include "weir/store/memory/slot_model_cases.h"
#include "weir/store/memory/slot_model_explore.h"

namespace weir::slot_model::slot_model_random_test {
namespace {

// splitmix64: gives the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>((z ^ (z >> 31)) % n);
  }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// One or two groups with dead, live and evicted keys; sometimes without room, with a bound on buckets, or with a raised
// horizon.
Case draw_table(Random& random) {
  Case drawn{"", {}, {}};
  drawn.slots = 1 + random.below(2);
  const std::size_t groups = 1 + random.below(2);
  std::vector<std::vector<std::size_t>> records;
  std::vector<std::size_t> free_pages;
  std::size_t page = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    records.push_back({page++});
    if (random.one_in(4)) records.back().push_back(page++);
  }
  for (; page < kPages; ++page) {
    if (!random.one_in(3)) free_pages.push_back(page);
  }
  std::vector<std::size_t> filled(groups, 0);
  std::vector<Placed> placed;
  for (std::size_t key = kAnn; key <= kCem; ++key) {
    const std::size_t g = random.below(groups);
    drawn.group_of[key] = small(g);
    if (random.one_in(3) || filled[g] == records[g].size() * drawn.slots) continue;
    const std::size_t at = filled[g]++;
    placed.push_back({key, random.one_in(6) ? 0 : 4 + random.below(4), records[g][at / drawn.slots], at % drawn.slots});
  }
  drawn.start = table(records, free_pages, placed, random.one_in(3) ? 5 : 0);
  if (random.one_in(3)) drawn.bound = 1 + random.below(2);
  drawn.noise = random.one_in(2) ? 1 : 0xff;
  return drawn;
}

Op draw_op(Random& random, std::size_t groups) {
  const std::size_t key = kAnn + random.below(kCem);
  switch (random.below(8)) {
    case 0:
      return reset(key, 5);
    case 1:
    case 2:
      return rebuild(random.below(groups), 1 + random.below(kGroupPages));
    case 3:
      return random.one_in(2) ? refused(random.below(groups)) : raise_horizon(4 + random.below(3));
    default:
      return spend(key, random.one_in(4) ? 4 : 5);
  }
}

Case draw(std::uint64_t seed, std::size_t threads, std::size_t ops_max) {
  Random random(seed);
  Case drawn = draw_table(random);
  const std::size_t groups = drawn.start.groups[1].shape.pages() != 0 ? 2 : 1;
  for (std::size_t t = 0; t < threads; ++t) {
    drawn.programs.emplace_back();
    for (std::size_t ops = 1 + random.below(ops_max); ops > 0; --ops) {
      drawn.programs.back().push_back(draw_op(random, groups));
    }
  }
  return drawn;
}

struct Tally {
  std::size_t cases = 0;
  std::size_t states = 0;
  std::size_t complete = 0;
  std::size_t evictions = 0;
  std::size_t faults = 0;
};

// `hunting`: a fault is expected; stops at the first.
Tally explore_drawn(std::size_t cases, const Protocol& protocol, bool hunting) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= cases && !(hunting && tally.faults != 0); ++seed) {
    const Case drawn = draw(seed, 2 + seed % 2, seed % 2 == 0 ? 3 : 1);
    const Finding finding = explore(drawn, protocol, !hunting, 20'000);
    ++tally.cases;
    tally.states += finding.states;
    tally.complete += finding.complete ? 1 : 0;
    tally.evictions += finding.evictions;
    if (finding.fault == nullptr) continue;
    ++tally.faults;
    if (!hunting) ADD_FAILURE() << "seed " << seed << ": " << finding.fault << '\n' << finding.trace;
  }
  std::cout << "[  model   ] " << tally.cases << " cases, " << tally.complete << " of them completely, " << tally.states
            << " states, " << tally.evictions << " evictions, faults in " << tally.faults << std::endl;
  return tally;
}

TEST(SlotModelAtRandom, HoldsInEveryInterleavingOfDrawnCases) {
  const Tally tally = explore_drawn(400, {}, false);
  EXPECT_EQ(tally.faults, 0u);
  EXPECT_GT(tally.complete, 350u);
  EXPECT_GT(tally.evictions, 0u);
}

// The cases are useful only if broken protocols fail in them.
TEST(SlotModelAtRandom, DrawnCasesFindMutants) {
  for (const auto rule :
       {&Protocol::salt, &Protocol::mark, &Protocol::mark_dead, &Protocol::reread_fp, &Protocol::search_again,
        &Protocol::evict_by_swap, &Protocol::unmark_all, &Protocol::return_under_lock}) {
    Protocol protocol;
    protocol.*rule = false;
    EXPECT_GT(explore_drawn(150, protocol, true).faults, 0u);
  }
}

}  // namespace
}  // namespace weir::slot_model::slot_model_random_test
