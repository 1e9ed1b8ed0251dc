#include "weir/simulate/client_table.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::simulate::client_table_test {
namespace {

using namespace std::chrono_literals;

Now at(Duration t) {
  return {Time{t}, Wall{t}};
}

TEST(ClientTable, FindsEveryClientAgain) {
  ClientTable table(10'000, 1);
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    table.begin();
    EXPECT_EQ(table.find_or_add("k:" + std::to_string(i), at(1s)), i);
  }
  for (std::uint32_t i = 0; i < 10'000; ++i) EXPECT_EQ(table.find_or_add("k:" + std::to_string(i), at(1s)), i);
  EXPECT_EQ(table.size(), 10'000u);
}

TEST(ClientTable, AtTheBoundAClientWhoseBucketIsFullGivesWay) {
  ClientTable table(3, 1);
  for (const char* const key : {"a", "b", "c"}) {
    table.begin();
    TrackedClient& client = table[table.find_or_add(key, at(1s))];
    client.counts.allowed = 1;
    client.state.tat = Time{*key == 'b' ? 2s : 100s};
  }
  EXPECT_EQ(table.rest(0).clients, 0u);
  table.begin();
  const std::uint32_t place = table.find_or_add("d", at(3s));
  EXPECT_EQ(place, 1u) << "b is full again";
  EXPECT_TRUE(table[place].succeeds_another);
  EXPECT_EQ(table.rest(0).clients, 1u);
  EXPECT_EQ(table.rest(0).counts.allowed, 1u);
  EXPECT_EQ(table.forgotten(), 0u);
  EXPECT_EQ(table.size(), 3u);
}

TEST(ClientTable, CountsABucketThatIsForgottenTooEarly) {
  ClientTable table(2, 1);
  for (const char* const key : {"a", "b"}) {
    table.begin();
    table[table.find_or_add(key, at(1s))].state.tat = Time{*key == 'a' ? 50s : 60s};
  }
  table.begin();
  EXPECT_EQ(table.find_or_add("c", at(2s)), 0u) << "a is nearer to full";
  EXPECT_EQ(table.forgotten(), 1u);
}

TEST(ClientTable, FindsTheOthersAfterManyGaveWay) {
  ClientTable table(100, 1);
  for (int i = 0; i < 5000; ++i) {
    table.begin();
    (void)table.find_or_add("k:" + std::to_string(i), at(1s));
    EXPECT_EQ(table[table.find_or_add("k:" + std::to_string(i), at(1s))].key(), "k:" + std::to_string(i));
  }
  EXPECT_EQ(table.size(), 100u);
  EXPECT_EQ(table.rest(0).clients, 4900u);
}

}  // namespace
}  // namespace weir::simulate::client_table_test
