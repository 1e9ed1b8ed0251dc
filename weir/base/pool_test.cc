#include "weir/base/pool.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::pool_test {
namespace {

constexpr std::size_t kSpareMin = 2;
constexpr std::size_t kTrimMax = Pool<std::string>::kTrimMax;

std::vector<std::size_t> take_many(Pool<std::string>& pool, std::size_t count) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(pool.take());
  return numbers;
}

void release_all(Pool<std::string>& pool, const std::vector<std::size_t>& numbers) {
  for (const std::size_t number : numbers) pool.release(number);
}

TEST(Pool, NamesEveryObjectInUseByANumberOfItsOwn) {
  Pool<std::string> pool(kSpareMin);
  const auto numbers = take_many(pool, 3);
  for (const std::size_t number : numbers) pool[number] = std::to_string(number);
  pool.release(numbers[1]);
  EXPECT_EQ(pool.in_use(), 2u);
  EXPECT_EQ(pool[numbers[0]], std::to_string(numbers[0]));
  EXPECT_EQ(pool[numbers[2]], std::to_string(numbers[2]));
  EXPECT_EQ(pool.take(), numbers[1]);
}

TEST(Pool, GivesAReleasedObjectToTheNextUserUnlessItIsNotToBeKept) {
  Pool<std::string> pool(kSpareMin);
  const std::size_t kept = pool.take();
  pool[kept] = "kept";
  pool.release(kept);
  EXPECT_EQ(pool.spare(), 1u);
  const std::size_t again = pool.take();
  EXPECT_EQ(pool[again], "kept");
  pool.release(again, false);
  EXPECT_EQ(pool.spare(), 0u);
  EXPECT_EQ(pool[pool.take()], "");
}

TEST(Pool, KeepsAsManyObjectsAsWereInUseAtOnceSinceTheLastTrim) {
  Pool<std::string> pool(kSpareMin);
  release_all(pool, take_many(pool, 10));
  EXPECT_TRUE(pool.trim());
  EXPECT_EQ(pool.spare(), 10u);  // they were needed
  release_all(pool, take_many(pool, 5));
  EXPECT_TRUE(pool.trim());
  EXPECT_EQ(pool.spare(), 5u);
  EXPECT_TRUE(pool.has_excess());
  EXPECT_TRUE(pool.trim());
  EXPECT_EQ(pool.spare(), kSpareMin);
  EXPECT_FALSE(pool.has_excess());
}

TEST(Pool, TrimsABoundedNumberAtATime) {
  Pool<std::string> pool(kSpareMin);
  release_all(pool, take_many(pool, kSpareMin + kTrimMax + 1));
  EXPECT_TRUE(pool.trim());
  EXPECT_FALSE(pool.trim());
  EXPECT_EQ(pool.spare(), kSpareMin + 1);
  EXPECT_TRUE(pool.trim());
  EXPECT_EQ(pool.spare(), kSpareMin);
}

TEST(Pool, TrimsNothingThatIsInUse) {
  Pool<std::string> pool(kSpareMin);
  const auto numbers = take_many(pool, 10);
  pool.release(numbers[9]);
  EXPECT_TRUE(pool.trim());
  EXPECT_TRUE(pool.trim());
  EXPECT_EQ(pool.in_use(), 9u);
  EXPECT_EQ(pool.spare(), 0u);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(pool[numbers[i]], "");
}

}  // namespace
}  // namespace weir::pool_test
