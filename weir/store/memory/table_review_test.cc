// Edge cases that a review of the table found. Each once caused a wrong answer, an abort or a stall.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "weir/store/memory/pages.h"
#include "weir/store/memory/region.h"
#include "weir/store/memory/table.h"

namespace weir::table_review_test {
namespace {

using namespace std::chrono_literals;

constexpr HashKey kSeed{3, 4};
constexpr Limit kHourly = Limit::per_hour(2);
constexpr Wall kNoon{std::chrono::sys_days{std::chrono::year{2026} / 5 / 4} + 12h};

Decision spend(Table& table, const std::string& key, const Limit& limit, Time now) {
  return table.spend(table.hash(Key{key}), Key{key}, limit, 1, now);
}

Quota until(Wall end) {
  return {1, {end - 24h, end}, end + 24h};
}

Decision spend(Table& table, const std::string& text, const Quota& quota, Now now) {
  const Key key{text, Kind::quota};
  return table.spend(table.hash(key), key, quota, 1, now);
}

std::uint64_t visited(const Table& table) {
  std::uint64_t count = 0;
  for (std::size_t group = 0; group < table.groups(); ++group) {
    table.visit(group, [&](const Table::Bucket&) { ++count; });
  }
  return count;
}

// Room for far fewer buckets than the bound allows.
std::unique_ptr<Table> make_starved(std::uint64_t buckets_max) {
  return std::move(*Table::create({.buckets_max = buckets_max, .names = false, .huge_pages = false}, kSeed,
                                  std::move(*Region::anonymous(std::size_t{2} << 20))));
}

TEST(TableReview, ARegionWithoutRoomForAPageIsAnErrorAndNoAbort) {
  // The groups' records end with the region.
  const std::size_t groups = ((std::size_t{2} << 20) - kHeaderBytes) / sizeof(Group);
  const auto table = Table::create({.buckets_max = groups * 12'288, .names = false, .huge_pages = false}, kSeed,
                                   std::move(*Region::anonymous(std::size_t{2} << 20)));
  EXPECT_FALSE(table);
}

TEST(TableReview, GroupsThatCannotGrowEvictAndSeldomAskForPages) {
  constexpr int kKeys = 150'000;
  auto table = make_starved(200'000);
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(spend(*table, "k" + std::to_string(i), kHourly, Time{10s}).allowed) << i;
  }
  const Table::Stats stats = table->stats();
  EXPECT_GT(stats.evicted, 20'000u);
  EXPECT_EQ(stats.buckets + stats.evicted, static_cast<std::uint64_t>(kKeys));
  EXPECT_EQ(visited(*table), stats.buckets);
  // Each attempt to grow marks and unmarks the whole group.
  EXPECT_GT(stats.refused_growth, 0u);
  EXPECT_LT(stats.refused_growth, stats.evicted / 20);
}

TEST(TableReview, AGroupThatCannotGrowTakesExpiredBucketsBeforeLiveOnes) {
  auto table = make_starved(200'000);
  constexpr int kKeys = 100'000;
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(spend(*table, "old" + std::to_string(i), kHourly, Time{10s}).allowed);
  const Table::Stats before = table->stats();
  // Two hours later all of them are full and may be forgotten without being counted.
  constexpr int kNew = kKeys / 20;
  for (int i = 0; i < kNew; ++i) ASSERT_TRUE(spend(*table, "new" + std::to_string(i), kHourly, Time{2h}).allowed);
  // Only a few new keys had no old neighbor to evict.
  EXPECT_LT(table->stats().evicted - before.evicted, kNew / 100u);
}

TEST(TableReview, AWallClockThatWasAheadForAMomentDoesNotEndQuotas) {
  auto table = std::move(*Table::create({.buckets_max = 1000, .names = false, .huge_pages = false}, kSeed));
  const Quota daily = until(kNoon + 12h);
  table->maintain({Time{10s}, kNoon + std::chrono::years{50}});  // corrected again below
  for (int round = 0; round < 3; ++round) {
    const Now now{Time{11s + round * 1s}, kNoon + round * 1s};
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(spend(*table, "k" + std::to_string(i), daily, now).allowed, round == 0) << "round " << round;
    }
    table->maintain(now);
  }
}

TEST(TableReview, AQuotaIsForgottenWhenItsWindowHasEnded) {
  auto table = std::move(*Table::create({.buckets_max = 1000, .names = false, .huge_pages = false}, kSeed));
  const Quota daily = until(kNoon + 12h);
  for (int i = 0; i < 100; ++i) spend(*table, "k" + std::to_string(i), daily, {Time{10s}, kNoon});
  table->maintain({Time{12h}, kNoon + 12h + 1s});
  EXPECT_EQ(visited(*table), 100u);
  table->maintain({Time{12h}, kNoon + 12h + 1s + 10ms});
  EXPECT_EQ(visited(*table), 0u);
}

TEST(TableReview, ABucketThatNeedsRoomEvictsAQuotaThatEndsSooner) {
  auto table = std::move(*Table::create({.buckets_max = 20, .names = false, .huge_pages = false}, kSeed));
  // Spends from buckets have no wall clock reading. The quotas here end in a minute; the buckets are full in an hour.
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(spend(*table, "q" + std::to_string(i), until(kNoon + 1min), {Time{10s}, kNoon}).allowed);
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(spend(*table, "b" + std::to_string(i), Limit::per_hour(1), Time{10s}).allowed);
  }
  int quotas = 0;
  for (std::size_t group = 0; group < table->groups(); ++group) {
    table->visit(group, [&](const Table::Bucket& bucket) { quotas += bucket.kind == Kind::quota ? 1 : 0; });
  }
  EXPECT_EQ(quotas, 0);
  EXPECT_EQ(table->stats().evicted, 10u);
}

// madvise fails in a program that locks its memory; fallocate fails on a file system without holes.
TEST(PagesReview, AChunkThatTheSystemDidNotTakeBackIsCleared) {
  Region region = std::move(*Region::anonymous(std::size_t{4} << 20));
  char* const data = region.data();
  ASSERT_TRUE(region.extend(Pages::kChunkBytes));
  Pages pages(std::move(region), Pages::kChunkBytes, false);
  Line page = 0;
  ASSERT_TRUE(pages.allocate(10, std::span(&page, 1)));
  char* const bytes = data + std::size_t{page} * kLineBytes;
  constexpr std::size_t kPageBytes = kLineBytes << 10;
  std::memset(bytes, 0x5a, kPageBytes);
  // The raw system call, because sanitizers turn mlock() into a no-op.
  if (syscall(SYS_mlock, data, std::size_t{1} << 20) != 0) GTEST_SKIP() << "no memory may be locked here";
  pages.release(10, std::span(&page, 1));
  pages.maintain();
  pages.maintain();
  Line again = 0;
  ASSERT_TRUE(pages.allocate(10, std::span(&again, 1)));
  EXPECT_EQ(again, page);
  EXPECT_TRUE(std::all_of(bytes, bytes + kPageBytes, [](char byte) { return byte == 0; }));
}

}  // namespace
}  // namespace weir::table_review_test
