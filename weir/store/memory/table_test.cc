#include "weir/store/memory/table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/gcra.h"

namespace weir::table_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kTwenty = Limit::per_second(20);
constexpr Limit kTwoAnHour = Limit::per_hour(2);
constexpr HashKey kSeed{1, 2};

std::unique_ptr<Table> make(std::uint64_t buckets_max, bool names = false) {
  return std::move(*Table::create({.buckets_max = buckets_max, .names = names, .huge_pages = false}, kSeed));
}

Decision spend(Table& table, std::string_view key, Time now, const Limit& limit = kTwenty, Count cost = 1) {
  return table.spend(table.hash(Key{key}), Key{key}, limit, cost, now);
}

Count remaining(Table& table, std::string_view key, Time now, const Limit& limit = kTwenty) {
  return table.peek(table.hash(Key{key}), limit, 0, now).remaining;
}

std::string client(int i) {
  return "client-" + std::to_string(i);
}

TEST(Table, DecidesLikeTheAlgorithmAlone) {
  auto table = make(1000);
  Time tat{};
  for (int i = 0; i < 200; ++i) {
    const Time now{10s + i * 7ms};
    const Step step = gcra::spend(kTwenty, tat, 1, now);
    tat = step.tat;
    EXPECT_EQ(spend(*table, "a", now), step.decision) << i;
  }
}

TEST(Table, GrowsFromNothingWithoutForgettingAnybody) {
  constexpr int kKeys = 300'000;
  auto table = make(2'000'000);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(spend(*table, client(i), Time{10s}, kTwoAnHour).allowed, round < 2) << i;
  }
  EXPECT_EQ(table->stats().buckets, kKeys);
  EXPECT_EQ(table->stats().evicted, 0u);
}

TEST(Table, ADeniedRequestChangesNothing) {
  auto table = make(1000);
  EXPECT_TRUE(spend(*table, "a", Time{10s}, kTwoAnHour, 2).allowed);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(spend(*table, "a", Time{10s + i * 1s}, kTwoAnHour).allowed);
  // If denials had taken tokens, this would be denied.
  EXPECT_TRUE(spend(*table, "a", Time{10s + 30min}, kTwoAnHour).allowed);
}

TEST(Table, ACostThatCanNeverPassStoresNothing) {
  auto table = make(1000);
  EXPECT_EQ(spend(*table, "a", Time{10s}, kTwoAnHour, 3).retry_after, kNever);
  EXPECT_EQ(spend(*table, "b", Time{10s}, kTwoAnHour, 0).allowed, true);
  EXPECT_EQ(table->stats().buckets, 0u);
}

TEST(Table, RefundGivesBackButNeverBeyondFull) {
  auto table = make(1000);
  spend(*table, "a", Time{10s}, kTwenty, 5);
  EXPECT_EQ(table->refund(table->hash(Key{"a"}), kTwenty, 2, Time{10s}).remaining, 17);
  EXPECT_EQ(table->refund(table->hash(Key{"a"}), kTwenty, 99, Time{10s}).remaining, 20);
  EXPECT_EQ(remaining(*table, "a", Time{10s}), 20);
  EXPECT_EQ(table->refund(table->hash(Key{"nobody"}), kTwenty, 1, Time{10s}).remaining, 20);
  EXPECT_EQ(table->stats().buckets, 1u);
}

TEST(Table, ResetFillsTheBucketAndTellsWhetherItWasSpent) {
  auto table = make(1000);
  spend(*table, "a", Time{10s}, kTwenty, 20);
  EXPECT_TRUE(table->reset(table->hash(Key{"a"}), Kind::bucket, Now{Time{10s}, Wall{}}));
  EXPECT_EQ(remaining(*table, "a", Time{10s}), 20);
  EXPECT_FALSE(table->reset(table->hash(Key{"a"}), Kind::bucket, Now{Time{10s}, Wall{}}));
  EXPECT_FALSE(table->reset(table->hash(Key{"nobody"}), Kind::bucket, Now{Time{10s}, Wall{}}));
}

TEST(Table, AFullTableForgetsTheBucketNearestToFullAndCountsIt) {
  auto table = make(8);
  for (int i = 0; i < 8; ++i) spend(*table, client(i), Time{10s}, kTwenty, 20 - i);
  EXPECT_EQ(table->stats().evicted, 0u);
  // client-7 has spent the least.
  spend(*table, "new", Time{10s}, kTwenty, 20);
  EXPECT_EQ(table->stats().evicted, 1u);
  EXPECT_EQ(table->stats().buckets, 8u);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(remaining(*table, client(i), Time{10s}), i);
  EXPECT_EQ(remaining(*table, client(7), Time{10s}), 20);
  EXPECT_EQ(remaining(*table, "new", Time{10s}), 0);
}

TEST(Table, AFullTableGoesOnLimiting) {
  auto table = make(100);
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = client(i);
    EXPECT_TRUE(spend(*table, key, Time{10s}, kTwoAnHour, 2).allowed);
    EXPECT_FALSE(spend(*table, key, Time{10s}, kTwoAnHour).allowed) << key;
  }
  EXPECT_EQ(table->stats().buckets, 100u);
  EXPECT_EQ(table->stats().evicted, 9'900u);
}

TEST(Table, ExpiredBucketsMakeRoomWithoutEviction) {
  auto table = make(1000);
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(spend(*table, client(i), Time{10s + i * 10ms}, kTwenty).allowed);
  EXPECT_EQ(table->stats().evicted, 0u);
}

TEST(Table, AThreadWithAnOldReadingCannotSpendAForgottenBucketTwice) {
  constexpr Limit kFive = Limit::per_second(5);
  auto table = make(1);
  // The bucket is emptied at 10 s, is full again at 11 s, and is forgotten at 20 s, when another key takes its slot.
  EXPECT_TRUE(spend(*table, "a", Time{10s}, kFive, 5).allowed);
  EXPECT_TRUE(spend(*table, "b", Time{20s}, kFive, 5).allowed);
  // A thread read the clock at 10 s and was delayed since. At that reading the bucket was empty. Its spend is decided
  // at the horizon instead, 19 s, where the bucket is full. The next clock reading must not grant it again.
  EXPECT_TRUE(spend(*table, "a", Time{10s}, kFive, 5).allowed);
  EXPECT_FALSE(spend(*table, "a", Time{19s}, kFive, 1).allowed);
  EXPECT_FALSE(spend(*table, "a", Time{10s}, kFive, 1).allowed);
}

TEST(Table, MaintainGivesMemoryBack) {
  auto table = make(1'000'000);
  for (int i = 0; i < 200'000; ++i) spend(*table, client(i), Time{10s});
  const std::uint64_t grown = table->stats().bytes;
  const Now later{Time{1h}, Wall{}};
  // Memory is kept for one round in case it is needed again immediately.
  for (int round = 0; round < 3; ++round) {
    while (!table->maintain(later)) {
    }
  }
  EXPECT_EQ(table->stats().buckets, 0u);
  EXPECT_LT(table->stats().bytes, grown / 4);
  EXPECT_TRUE(spend(*table, "a", Time{1h}).allowed);
}

TEST(Table, MaintainForgetsNobodyWhoIsNotFull) {
  auto table = make(1'000'000);
  for (int i = 0; i < 50'000; ++i) spend(*table, client(i), Time{10s}, i % 100 == 0 ? kTwoAnHour : kTwenty, 2);
  while (!table->maintain(Now{Time{10min}, Wall{}})) {
  }
  EXPECT_EQ(table->stats().buckets, 500u);
  for (int i = 0; i < 50'000; i += 100) EXPECT_FALSE(spend(*table, client(i), Time{10min}, kTwoAnHour).allowed) << i;
}

TEST(Table, ListsItsBucketsByName) {
  auto table = make(100'000, true);
  for (int i = 0; i < 5'000; ++i) spend(*table, client(i), Time{10s}, kTwoAnHour, i % 2 + 1);
  std::map<std::string, Count> seen;
  for (std::size_t group = 0; group < table->groups(); ++group) {
    table->visit(group, [&](const Table::Bucket& bucket) {
      const Time tat{Duration{static_cast<std::int64_t>(bucket.state)}};
      const bool fresh = seen.emplace(bucket.name, gcra::peek(kTwoAnHour, tat, 0, Time{10s}).remaining).second;
      EXPECT_TRUE(fresh) << bucket.name;
    });
  }
  ASSERT_EQ(seen.size(), 5'000u);
  for (int i = 0; i < 5'000; ++i) EXPECT_EQ(seen[client(i)], 1 - i % 2);
}

TEST(Table, NamesOfForgottenBucketsAreForgotten) {
  auto table = make(100'000, true);
  for (int wave = 0; wave < 20; ++wave) {
    const Time now{10s + wave * 1min};
    for (int i = 0; i < 5'000; ++i) spend(*table, "wave-" + std::to_string(wave) + "-" + client(i), now);
    while (!table->maintain(Now{now, Wall{}})) {
    }
  }
  std::size_t listed = 0;
  for (std::size_t group = 0; group < table->groups(); ++group) {
    table->visit(group, [&](const Table::Bucket& bucket) {
      ++listed;
      EXPECT_TRUE(bucket.name.starts_with("wave-19-")) << bucket.name;
    });
  }
  EXPECT_EQ(listed, 5'000u);
  // Twenty waves of 5,000 names of 24 bytes are 2.4 MB; one wave and its slots fit into a fraction of that.
  EXPECT_LT(table->stats().bytes, 1'500'000u);
}

TEST(Table, ALongNameIsKeptUpToItsBound) {
  auto table = make(100, true);
  const std::string at_bound(bounds::key_bytes_max, 'x');
  const std::string beyond(bounds::key_bytes_max + 1, 'y');
  spend(*table, at_bound, Time{10s});
  spend(*table, beyond, Time{10s});
  std::map<std::string, int> seen;
  table->visit(0, [&](const Table::Bucket& bucket) { ++seen[std::string(bucket.name)]; });
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen.count(at_bound), 1u);
  EXPECT_EQ(seen.count(beyond.substr(0, bounds::key_bytes_max)), 1u);
}

TEST(Table, AQuotaAndABucketOfOneKeyAreTwoBuckets) {
  auto table = make(1000);
  const Wall noon{std::chrono::hours{12}};
  const Quota quota{3, {Wall{}, Wall{std::chrono::days{1}}}, Wall{std::chrono::days{2}}};
  const Key key{"a", Kind::quota};
  const std::uint64_t h = table->hash(key);
  EXPECT_NE(h, table->hash(Key{"a"}));
  spend(*table, "a", Time{10s});
  EXPECT_EQ(table->spend(h, key, quota, 2, {Time{10s}, noon}), (Decision{true, 3, 1, 0ns, 12h}));
  EXPECT_EQ(table->spend(h, key, quota, 2, {Time{10s}, noon}), (Decision{false, 3, 1, 12h, 12h}));
  EXPECT_EQ(table->refund(h, quota, 1, {Time{10s}, noon}).remaining, 2);
  EXPECT_TRUE(table->reset(h, Kind::quota, {Time{10s}, noon}));
  EXPECT_EQ(table->peek(h, quota, 1, {Time{10s}, noon}).remaining, 3);
  EXPECT_EQ(remaining(*table, "a", Time{10s}), 19);
}

TEST(Table, AQuotaIsKeptUntilItsWindowEndsAndForgottenAfter) {
  auto table = make(100'000);
  const Wall day_end{std::chrono::days{1}};
  const Quota quota{3, {Wall{}, day_end}, Wall{std::chrono::days{2}}};
  const Key key{"a", Kind::quota};
  table->spend(table->hash(key), key, quota, 3, {Time{10s}, Wall{}});
  while (!table->maintain({Time{23h}, day_end - 1h})) {
  }
  EXPECT_EQ(table->stats().buckets, 1u);
  EXPECT_FALSE(table->spend(table->hash(key), key, quota, 1, {Time{23h}, day_end - 1h}).allowed);
  for (int i = 0; i < 50; ++i) spend(*table, client(i), Time{25h}, kTwoAnHour);
  while (!table->maintain({Time{25h}, day_end + 1h})) {
  }
  EXPECT_TRUE(table->spend(table->hash(key), key, quota, 3, {Time{25h}, day_end + 1h}).allowed);
}

TEST(Table, RefusesABoundOfZeroAndOnePastTheMost) {
  EXPECT_FALSE(Table::create({.buckets_max = 0}));
  const auto refused = Table::create({.buckets_max = bounds::buckets_max + 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "max_buckets 1000000001 must be from 1 to 1000000000");
  EXPECT_TRUE(Table::create({.buckets_max = 1}));
  EXPECT_TRUE(Table::create({.buckets_max = bounds::buckets_max}));
}

TEST(Layout, NoStateOfAnyKeyLooksFree) {
  for (const std::uint64_t h : {std::uint64_t{1}, kStateMask, ~std::uint64_t{0}}) {
    for (const Kind kind : {Kind::bucket, Kind::quota}) {
      const std::uint64_t word = encode(h & kStateMask, h, kind);
      EXPECT_NE(word & kStateMask, 0u);
      EXPECT_EQ(word & kBusy, 0u);
      EXPECT_EQ(kind_of(word), kind);
      EXPECT_EQ(decode(word, h), ((h & kStateMask) + 1) & kStateMask) << "one more, never one less";
      EXPECT_EQ(decode(encode(12345, h, kind), h), 12345u);
    }
  }
}

TEST(Table, KeepsAnIdleBucketAndItsNameAsLongAsAsked) {
  const auto table = make(1000, true);
  table->keep_idle(60s);
  const Time start{1h};
  ASSERT_TRUE(spend(*table, "login:alice", start, Limit::per_second(1)).allowed);  // full again 1 s later
  const auto names_at = [&](Time now) {
    while (!table->maintain(Now{now, Wall{}})) {
    }
    std::vector<std::string> names;
    for (std::size_t group = 0; group < table->groups(); ++group) {
      table->visit(group, [&](const Table::Bucket& bucket) { names.emplace_back(bucket.name); });
    }
    return names;
  };
  EXPECT_EQ(names_at(start + 61s), std::vector<std::string>{"login:alice"});
  EXPECT_EQ(names_at(start + 62s), std::vector<std::string>{});
}

}  // namespace
}  // namespace weir::table_test
