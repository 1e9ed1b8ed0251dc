#include "weir/http/two_ended_test.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::two_ended_test {
namespace {

using namespace http;

std::size_t run_seed(bool http2, unsigned seed, bool breaks) {
  std::mt19937 random(seed);
  TwoEnded pair(
      http2, [&](std::size_t n) { return random() % n; }, http2 ? 12 : 4);
  return pair.run(200'000, breaks);
}

TEST(TwoEnded, Http1DeliversEveryBodyHoweverBothAreScheduled) {
  for (unsigned seed = 1; seed <= 20; ++seed) EXPECT_EQ(run_seed(false, seed, false), 4u) << seed;
}

TEST(TwoEnded, Http2DeliversEveryBodyHoweverBothAreScheduled) {
  for (unsigned seed = 1; seed <= 10; ++seed) EXPECT_EQ(run_seed(true, seed, false), 12u) << seed;
}

TEST(TwoEnded, EndsEverythingOnceWhenCallsAreCanceledAndConnectionsCut) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    run_seed(false, seed, true);
    run_seed(true, seed, true);
  }
}

}  // namespace
}  // namespace weir::two_ended_test
