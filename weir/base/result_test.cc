#include "weir/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace weir::result_test {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{Fault::invalid, "n " + std::to_string(n) + " must be even"};
  return n / 2;
}

Result<void> positive(int n) {
  if (n <= 0) return Error{Fault::too_large, "n must be positive"};
  return {};
}

TEST(Result, HoldsTheValue) {
  const Result<int> result = half(8);
  EXPECT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(*result, 4);
  EXPECT_EQ(result.value(), 4);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = half(7);
  EXPECT_FALSE(result);
  EXPECT_EQ(result.error(), (Error{Fault::invalid, "n 7 must be even"}));
}

TEST(Result, MovesAValueThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, LetsItsValueBeChangedInPlace) {
  Result<std::string> result = std::string("text");
  result->push_back('!');
  EXPECT_EQ(result.value(), "text!");
}

TEST(Result, OfVoidIsSuccessOrAnError) {
  EXPECT_TRUE(positive(1));
  EXPECT_FALSE(positive(0));
  EXPECT_EQ(positive(0).error().fault, Fault::too_large);
}

using ResultDeathTest = testing::Test;

TEST(ResultDeathTest, AbortsOnAccessToTheWrongAlternative) {
  EXPECT_DEATH(static_cast<void>(half(7).value()), "has_value");
  EXPECT_DEATH(static_cast<void>(half(8).error()), "has_value");
  EXPECT_DEATH(static_cast<void>(positive(1).error()), "failed_");
}

}  // namespace
}  // namespace weir::result_test
