#include "weir/overrides.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "weir/base/bounds.h"

namespace weir::overrides_test {
namespace {

constexpr Limit kLimit = Limit::per_second(10);

Limit numbered(Count burst) {
  return *Limit::make(1, std::chrono::seconds{1}, burst);
}

TEST(Overrides, HoldsWhatAMapHolds) {
  EXPECT_TRUE(rc::check([] {
    Overrides overrides;
    std::map<std::uint64_t, Limit> map;
    // Few homes, so that keys collide, wrap around the end and move when another key is removed.
    const auto keys =
        rc::gen::map(rc::gen::pair(rc::gen::element<std::uint64_t>(1, 13, 14, 15), rc::gen::inRange(0, 8)),
                     [](auto pair) { return pair.first + (std::uint64_t(pair.second) << 32); });
    const int steps = *rc::gen::inRange(1, 100);
    for (int i = 0; i < steps; ++i) {
      const std::uint64_t h = *keys;
      if (*rc::gen::inRange(0, 3) == 0) {
        RC_ASSERT(overrides.remove(h, Time{}) == (map.erase(h) == 1));
      } else {
        RC_ASSERT(bool(overrides.set(h, numbered(i + 1), Time{})));
        map.insert_or_assign(h, numbered(i + 1));
      }
      RC_ASSERT(overrides.size() == map.size());
      for (const auto& [key, limit] : map) RC_ASSERT(overrides.find(key) == limit);
      RC_ASSERT(overrides.find(h).has_value() == map.contains(h));
    }
  }));
}

TEST(Overrides, FindsNothingInAnEmptyOne) {
  Overrides overrides;
  EXPECT_FALSE(overrides.find(1));
  EXPECT_FALSE(overrides.remove(1, Time{}));
  ASSERT_TRUE(overrides.set(1, kLimit, Time{}));
  EXPECT_TRUE(overrides.remove(1, Time{}));
  EXPECT_FALSE(overrides.find(1));
}

TEST(Overrides, HoldsAsManyAsTheBoundSaysAndNoMore) {
  Overrides overrides;
  for (std::uint64_t h = 1; h <= bounds::overrides_max; ++h) ASSERT_TRUE(overrides.set(h, kLimit, Time{}));
  EXPECT_EQ(overrides.set(bounds::overrides_max + 1, kLimit, Time{}).error(),
            (Error{Fault::too_large, "a limiter has at most 1000000 overrides"}));
  EXPECT_TRUE(overrides.set(1, numbered(2), Time{}));
  EXPECT_EQ(overrides.find(1), numbered(2));
  EXPECT_FALSE(overrides.find(bounds::overrides_max + 1));
}

}  // namespace
}  // namespace weir::overrides_test
