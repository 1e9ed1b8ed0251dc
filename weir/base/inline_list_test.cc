#include "weir/base/inline_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::inline_list_test {
namespace {

struct Pair {
  int a = 7;
  int b = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};
using List = InlineList<Pair, 3>;

TEST(InlineList, ConstructsAnItemInPlace) {
  InlineList<Pair, 2> list;
  list.emplace_back(Pair{1, 2}).b = 3;
  list.emplace_back();
  EXPECT_EQ(list[0].a, 1);
  EXPECT_EQ(list[0].b, 3);
  EXPECT_DEATH(list.emplace_back(), "size_ < N");
}

TEST(InlineList, KeepsItemsInOrder) {
  List list;
  EXPECT_TRUE(list.empty());
  list.push_back({1, 2});
  list.push_back({});
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(std::vector<Pair>(list.begin(), list.end()), (std::vector<Pair>{{1, 2}, {7, 0}}));
  list[0].a = 5;
  EXPECT_EQ(list[0], (Pair{5, 2}));
}

TEST(InlineList, CopiesAreIndependent) {
  List list;
  list.push_back({1, 1});
  List copy = list;
  copy[0].a = 2;
  copy.push_back({3, 3});
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].a, 1);
  list = copy;
  const List& self = list;
  list = self;
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1], (Pair{3, 3}));
}

TEST(InlineList, HoldsExactlyItsCapacity) {
  List list;
  for (int i = 0; i < 3; ++i) list.push_back({i, i});
  EXPECT_EQ(list[2].a, 2);
  EXPECT_DEATH(list.push_back({}), "size_ < N");
  EXPECT_DEATH((void)list[3], "i < size_");
}

}  // namespace
}  // namespace weir::inline_list_test
