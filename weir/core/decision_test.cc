#include "weir/core/decision.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::decision_test {
namespace {

using namespace std::chrono_literals;

TEST(Stricter, PutsDeniedFirstThenTheLongestWaitThenTheFewestRemaining) {
  // From strictest to laxest: each is stricter than all after it.
  const std::vector<Decision> order{
      {false, 5, 5, kNever, 0ns}, {false, 5, 0, 2s, 5s}, {false, 5, 0, 1s, 5s}, {false, 5, 1, 1s, 4s},
      {true, 5, 0, 0ns, 5s},      {true, 5, 3, 0ns, 2s}, {true, 9, 4, 0ns, 1s},
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < order.size(); ++j) {
      EXPECT_EQ(stricter(order[i], order[j]), i < j) << i << " against " << j;
    }
  }
}

TEST(Stricter, AnAllowedAnswerNeverBeatsADeniedOne) {
  EXPECT_FALSE(stricter({true, 5, 0, 0ns, 100h}, {false, 5, 5, 1ns, 0ns}));
  EXPECT_TRUE(stricter({false, 5, 5, 1ns, 0ns}, {true, 5, 0, 0ns, 100h}));
}

TEST(Stricter, EqualAnswersAreNotStricterThanEachOther) {
  const Decision d{false, 5, 0, 1s, 5s};
  EXPECT_FALSE(stricter(d, d));
}

}  // namespace
}  // namespace weir::decision_test
