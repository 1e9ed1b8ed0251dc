#include "weir/core/verdict.h"

#include <gtest/gtest.h>

namespace weir::verdict_test {
namespace {

using namespace std::chrono_literals;

TEST(Verdict, WithoutDecisionsAllows) {
  const Verdict verdict;
  EXPECT_TRUE(verdict.allowed);
  EXPECT_FALSE(verdict.degraded);
  EXPECT_TRUE(verdict.all.empty());
}

TEST(Decisions, KeepTheirOrder) {
  Decisions decisions;
  decisions.push_back({true, 5, 4, 0ns, 1s});
  decisions.push_back({false, 1, 0, 1s, 1s});
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].remaining, 4);
  decisions[1].remaining = 7;
  Count sum = 0;
  for (const Decision& decision : decisions) sum += decision.remaining;
  EXPECT_EQ(sum, 11);
}

TEST(DecisionsDeathTest, HoldAsManyAsARequestMayChargeAndNotOneMore) {
  Decisions decisions;
  for (std::size_t i = 0; i < bounds::charges_max; ++i) decisions.push_back({});
  EXPECT_EQ(decisions.size(), bounds::charges_max);
  EXPECT_DEATH(decisions.push_back({}), "size_ < N");
}

TEST(DecisionsDeathTest, AbortOnAnIndexThatIsNotThere) {
  Decisions decisions;
  decisions.push_back({});
  EXPECT_DEATH(static_cast<void>(decisions[1]), "i < size_");
}

}  // namespace
}  // namespace weir::verdict_test
