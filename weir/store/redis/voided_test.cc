#include "weir/store/redis/voided.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::redis::voided_test {
namespace {

TEST(Voided, TellsEveryBucketUntilThereWereTooMany) {
  Voided voided;
  std::vector<std::uint64_t> seen;
  const auto since = [&](std::uint64_t from) {
    seen.clear();
    return voided.visit_since(from, [&](std::uint64_t hash) { seen.push_back(hash); });
  };
  EXPECT_TRUE(since(voided.serial()));
  EXPECT_TRUE(seen.empty());
  for (std::uint64_t i = 0; i < bounds::denials_voided_max; ++i) voided.add(i);
  EXPECT_TRUE(since(0));
  ASSERT_EQ(seen.size(), bounds::denials_voided_max);
  EXPECT_EQ(seen.front(), 0u);
  EXPECT_EQ(seen.back(), bounds::denials_voided_max - 1);
  voided.add(7);
  EXPECT_FALSE(since(0)) << "the first is not known any more";
  EXPECT_TRUE(since(1));
  const std::uint64_t before = voided.serial();
  voided.add_all();
  EXPECT_FALSE(since(before));
  EXPECT_TRUE(since(voided.serial()));
}

}  // namespace
}  // namespace weir::redis::voided_test
