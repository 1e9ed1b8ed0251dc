#include "weir/store/memory/memory_bucket_scan.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "weir/algorithm/calendar.h"

namespace weir::memory_bucket_scan_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kHourly = Limit::per_hour(10);
constexpr Now kNow{Time{10s}, Wall{1'000'000s}};

std::unique_ptr<Table> make(std::uint64_t buckets_max) {
  return std::move(*Table::create({.buckets_max = buckets_max, .names = true, .huge_pages = false}, HashKey{1, 2}));
}

void spend(Table& table, const std::string& name) {
  const Key key{name};
  ASSERT_TRUE(table.spend(table.hash(key), key, kHourly, 1, kNow.time).allowed);
}

// Scans everything, `page` buckets at a time. Returns how often each name was seen.
std::map<std::string, int> walk(Table& table, std::size_t page) {
  MemoryBucketScan bucket_scan(table);
  std::map<std::string, int> seen;
  std::string cursor;
  do {
    std::size_t count = 0;
    bucket_scan.visit(
        cursor, BucketScan::Look::states, kNow,
        [&](const StoredBucket& bucket) {
          ++seen[std::string(bucket.key.text)];
          return ++count < page;
        },
        [&](const Result<BucketScan::Step>& step) { cursor = step->cursor; });
    EXPECT_LE(count, page);
  } while (!cursor.empty());
  return seen;
}

TEST(MemoryBucketScan, SeesEveryBucketOnceWhateverThePage) {
  auto table = make(200'000);
  for (int i = 0; i < 2000; ++i) spend(*table, "per-ip:" + std::to_string(i));
  for (const std::size_t page : {7ul, 500ul, 100'000ul}) {
    const auto seen = walk(*table, page);
    ASSERT_EQ(seen.size(), 2000u) << page;
    for (const auto& [name, times] : seen) ASSERT_EQ(times, 1) << name;
  }
}

TEST(MemoryBucketScan, AStepIsShortHoweverManyBucketsAGroupHolds) {
  constexpr std::size_t kMost = MemoryBucketScan::kBucketsPerStep;
  for (const std::size_t count : {kMost, kMost + 1}) {
    auto table = make(10'000);
    ASSERT_EQ(table->groups(), 1u);
    for (std::size_t i = 0; i < count; ++i) spend(*table, std::to_string(i));
    MemoryBucketScan bucket_scan(*table);
    std::size_t seen = 0;
    std::string cursor;
    bucket_scan.visit(
        {}, BucketScan::Look::states, kNow, [&](const StoredBucket&) { return ++seen != 0; },
        [&](const Result<BucketScan::Step>& step) { cursor = step->cursor; });
    EXPECT_EQ(seen, kMost);
    EXPECT_EQ(cursor.empty(), count == kMost);
    std::uint64_t forgotten = 0;
    bucket_scan.forget({}, kNow, [&](const Result<BucketScan::Step>& step) { forgotten = step->forgotten; });
    EXPECT_EQ(forgotten, kMost);
  }
}

TEST(MemoryBucketScan, TellsWhatIsLeftUntilABucketIsFullAndWhatAQuotaHolds) {
  auto table = make(1000);
  spend(*table, "a");
  const Key key{"a", Kind::quota};
  const Quota quota{5, {Wall{}, Wall{1'200'000s}}, Wall{1'500'000s}};
  ASSERT_TRUE(table->spend(table->hash(key), key, quota, 2, kNow).allowed);
  MemoryBucketScan bucket_scan(*table);
  int buckets = 0;
  bucket_scan.visit(
      {}, BucketScan::Look::states, {kNow.time + 1min, kNow.wall},
      [&](const StoredBucket& bucket) {
        ++buckets;
        EXPECT_EQ(bucket.key.text, "a");
        if (bucket.key.kind == Kind::bucket) {
          EXPECT_EQ(bucket.backlog, 5min);
        } else {
          EXPECT_EQ(quota::unpack(bucket.quota_state).used, 2);
        }
        return true;
      },
      [](const Result<BucketScan::Step>& step) {
        EXPECT_TRUE(step->cursor.empty());
        EXPECT_EQ(step->millionths, 1'000'000u);
      });
  EXPECT_EQ(buckets, 2);
}

TEST(MemoryBucketScan, LeavesOutAQuotaOfWhichNothingIsUsed) {
  auto table = make(1000);
  const Quota quota{5, {Wall{}, Wall{1'200'000s}}, Wall{1'500'000s}};
  for (const char* const name : {"reset", "active"}) {
    const Key key{name, Kind::quota};
    ASSERT_TRUE(table->spend(table->hash(key), key, quota, 2, kNow).allowed);
  }
  ASSERT_TRUE(table->reset(table->hash(Key{"reset", Kind::quota}), Kind::quota, kNow));
  EXPECT_EQ(walk(*table, 100), (std::map<std::string, int>{{"active", 1}}));
}

TEST(MemoryBucketScan, ForgetsEverythingInSteps) {
  auto table = make(200'000);
  for (int i = 0; i < 5000; ++i) spend(*table, std::to_string(i));
  MemoryBucketScan bucket_scan(*table);
  std::uint64_t forgotten = 0;
  int steps = 0;
  std::string cursor;
  do {
    ++steps;
    bucket_scan.forget(cursor, kNow, [&](const Result<BucketScan::Step>& step) {
      forgotten += step->forgotten;
      cursor = step->cursor;
    });
  } while (!cursor.empty());
  EXPECT_EQ(forgotten, 5000u);
  EXPECT_GT(steps, 1);
  for (int i = 0; i < 5000; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_EQ(table->peek(table->hash(Key{name}), kHourly, 0, kNow.time).remaining, 10);
  }
}

TEST(MemoryBucketScan, RefusesACursorThatItNeverGave) {
  auto table = make(1000);
  MemoryBucketScan bucket_scan(*table);
  for (const std::string_view cursor : {"x", "-1", "12345678901234567", "1 "}) {
    bucket_scan.visit(
        cursor, BucketScan::Look::keys, kNow, [](const StoredBucket&) { return true; },
        [&](const Result<BucketScan::Step>& step) { EXPECT_FALSE(step) << cursor; });
    bucket_scan.forget(cursor, kNow, [&](const Result<BucketScan::Step>& step) { EXPECT_FALSE(step) << cursor; });
  }
}

}  // namespace
}  // namespace weir::memory_bucket_scan_test
