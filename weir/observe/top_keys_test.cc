#include "weir/observe/top_keys.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace weir::top_keys_test {
namespace {

// What the owner of a sketch tracks: which key is in which place.
struct Kept {
  explicit Kept(std::size_t places) : sketch(places), keys(places) {}
  void add(std::uint64_t key) {
    const TopKeys::Place place = sketch.add(key);
    if (place.fresh) keys[place.number] = key;
    ASSERT_EQ(keys[place.number], key) << "a place that is not fresh belongs to the key that was added";
  }
  TopKeys sketch;
  std::vector<std::uint64_t> keys;
};

TEST(TopKeys, CountsExactlyWhileThereIsRoom) {
  Kept kept(3);
  for (const std::uint64_t key : {7, 7, 9, 7, 11}) kept.add(key);
  ASSERT_EQ(kept.sketch.size(), 3u);
  EXPECT_EQ(kept.sketch.floor(), 1u);
  EXPECT_EQ(kept.sketch.estimate(0), (TopKeys::Estimate{3, 0}));
  EXPECT_EQ(kept.sketch.estimate(1), (TopKeys::Estimate{1, 0}));
}

TEST(TopKeys, ANewcomerInheritsTheLowestCountAsItsError) {
  Kept kept(2);
  for (const std::uint64_t key : {1, 1, 1, 2, 2, 3}) kept.add(key);
  EXPECT_EQ(kept.keys[1], 3u);
  EXPECT_EQ(kept.sketch.estimate(1), (TopKeys::Estimate{3, 2}));
  EXPECT_EQ(kept.sketch.estimate(0), (TopKeys::Estimate{3, 0}));
  EXPECT_EQ(kept.sketch.size(), 2u) << "it never grows";
}

TEST(TopKeys, NothingIsAboveTheFloorBeforeItIsFull) {
  TopKeys sketch(2);
  EXPECT_EQ(sketch.floor(), 0u);
  sketch.add(1);
  EXPECT_EQ(sketch.floor(), 0u);
}

// Hashes that collide in the index, so that gaps are also closed across its end.
std::uint64_t crowded(std::uint64_t key) {
  return key << 32 | (key % 3 == 0 ? 63 : 0);
}

TEST(TopKeys, BoundsTheTruthAndKeepsEveryHeavyKey) {
  rc::check([](const std::vector<std::uint8_t>& stream, bool crowd) {
    const std::size_t places = *rc::gen::inRange<std::size_t>(1, 16);
    Kept kept(places);
    std::map<std::uint64_t, std::uint64_t> truth;
    for (const std::uint8_t byte : stream) {
      // Some keys are common, most are rare.
      const std::uint64_t key = byte < 100 ? byte % 4 : byte;
      const std::uint64_t hash = crowd ? crowded(key) : key * 0x9e3779b97f4a7c15u;
      kept.add(hash);
      ++truth[hash];
    }
    std::set<std::uint64_t> present;
    std::uint64_t sum = 0;
    for (std::uint32_t place = 0; place < kept.sketch.size(); ++place) {
      const TopKeys::Estimate estimate = kept.sketch.estimate(place);
      const std::uint64_t exact = truth[kept.keys[place]];
      RC_ASSERT(estimate.count >= exact);
      RC_ASSERT(estimate.count - estimate.error <= exact);
      RC_ASSERT(present.insert(kept.keys[place]).second);
      sum += estimate.count;
    }
    RC_ASSERT(sum == stream.size());
    for (const auto& [key, exact] : truth) {
      if (present.count(key) == 0) RC_ASSERT(exact <= kept.sketch.floor());
      if (exact * places > stream.size()) RC_ASSERT(present.count(key) == 1);
    }
  });
}

}  // namespace
}  // namespace weir::top_keys_test
