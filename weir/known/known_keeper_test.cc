#include "weir/known/known_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/known/known_samples_test.h"

namespace weir::known_keeper_test {
namespace {

using namespace std::chrono_literals;
using List = AccessEntry::List;

AccessEntry deny(std::string_view address, std::optional<Wall> expires = {}) {
  AccessEntry entry;
  entry.ip = IpPrefix::parse(address).value();
  entry.expires = expires;
  return entry;
}

// Saves in memory, and fails when `broken` is set.
struct MemoryArchive final : KnownArchive {
  SavedKnown saved;
  int saves = 0;
  bool broken = false;

  Result<SavedKnown> load() override {
    if (broken) return Error{Fault::unavailable, "no archive"};
    return saved;
  }
  Result<void> save(const SavedKnown& all) override {
    ++saves;
    if (broken) return Error{Fault::unavailable, "disk full"};
    saved = all;
    return {};
  }
};

TEST(KnownKeeper, ChangeIsInForceWhenTheCallReturns) {
  KnownKeeper keeper;
  Reader<Known> reader(keeper.known());
  ASSERT_TRUE(keeper.adjust(adjustment("7"), kNow));
  EXPECT_TRUE(reader.refresh());
  EXPECT_NE(reader.get()->adjustments().find({"orders", "7"}, kNow), nullptr);
  ASSERT_TRUE(keeper.add(deny("192.0.2.0/24"), kNow));
  EXPECT_TRUE(reader.refresh());
  EXPECT_NE(reader.get()->entries().find_ip(List::deny, IpPrefix::parse("192.0.2.9").value(), kNow), nullptr);
  EXPECT_NE(reader.get()->adjustments().find({"orders", "7"}, kNow), nullptr) << "the other parts stay";
  EXPECT_TRUE(keeper.unadjust("orders", "7", kNow));
  EXPECT_FALSE(keeper.unadjust("orders", "7", kNow));
  EXPECT_TRUE(keeper.remove(deny("192.0.2.0/24"), kNow));
  EXPECT_FALSE(keeper.remove(deny("192.0.2.0/24"), kNow));
  reader.refresh();
  EXPECT_TRUE(reader.get()->adjustments().all().empty());
  EXPECT_TRUE(reader.get()->entries().empty());
}

TEST(KnownKeeper, NewEntryReplacesOneForTheSameClient) {
  KnownKeeper keeper;
  ASSERT_TRUE(keeper.add(deny("192.0.2.1"), kNow));
  ASSERT_TRUE(keeper.add(deny("192.0.2.1", kNow + 1h), kNow));
  ASSERT_EQ(keeper.entries(List::deny, kNow).size(), 1u);
  EXPECT_EQ(keeper.entries(List::deny, kNow)[0].expires, kNow + 1h);
  EXPECT_TRUE(keeper.entries(List::allow, kNow).empty());
}

// Issue 14, row 10: after close() the archive belongs to the next process.
TEST(KnownKeeper, RefusesChangesAfterCloseInsteadOfLosingThem) {
  MemoryArchive archive;
  KnownKeeper keeper(&archive);
  archive.broken = true;
  ASSERT_TRUE(keeper.adjust(adjustment("7"), kNow));
  archive.broken = false;
  keeper.close();
  EXPECT_EQ(archive.saved.adjustments, std::vector{adjustment("7")}) << "what could not be saved before is saved";
  const int saves = archive.saves;
  const auto refused = keeper.adjust(adjustment("8"), kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Fault::unavailable, "the server is shutting down and accepts no more changes"}));
  EXPECT_FALSE(keeper.add(deny("192.0.2.1"), kNow));
  EXPECT_FALSE(keeper.unadjust("orders", "7", kNow));
  keeper.tick(kNow + 2h);
  EXPECT_EQ(archive.saves, saves);
}

TEST(KnownKeeper, RefusesExpiredOrEmptyChanges) {
  KnownKeeper keeper;
  EXPECT_FALSE(keeper.adjust(adjustment("7", kNow), kNow));
  EXPECT_FALSE(keeper.add(deny("192.0.2.1", kNow), kNow));
  Adjustment empty = adjustment("7");
  empty.burst.reset();
  EXPECT_FALSE(keeper.adjust(empty, kNow));
  EXPECT_FALSE(keeper.add(AccessEntry{}, kNow));
  EXPECT_EQ(keeper.known().version(), 0u);
}

TEST(KnownKeeper, BlockIsInForceAtOnce) {
  KnownKeeper keeper;
  keeper.block(deny("192.0.2.1", kNow + 10min));
  EXPECT_EQ(keeper.known().current()->blocks().entries().size(), 1u);
  keeper.block(deny("192.0.2.2", kNow + 10min));
  keeper.block(deny("192.0.2.1", kNow + 20min));
  EXPECT_EQ(keeper.entries(List::deny, kNow).size(), 2u);
  EXPECT_EQ(keeper.known().version(), 3u);
  keeper.tick(kNow + 1s);
  EXPECT_EQ(keeper.known().version(), 3u) << "nothing changed";
  EXPECT_TRUE(keeper.remove(deny("192.0.2.1"), kNow)) << "an operator removes a block like any entry";
  keeper.tick(kNow + 10min);
  EXPECT_TRUE(keeper.known().current()->blocks().empty());
}

TEST(KnownKeeper, CountsAndLogsEveryAutomaticBlockOnce) {
  std::vector<std::string> log;
  KnownKeeper keeper(nullptr, [&](std::string_view message) { log.emplace_back(message); });
  keeper.block(deny("192.0.2.1", kNow + 10min), "per-ip", "client blocked: client=ip:192.0.2.1");
  keeper.block(deny("192.0.2.2", kNow + 10min), "orders", "client blocked: client=ip:192.0.2.2");
  EXPECT_TRUE(log.empty()) << "a loop does not wait for the log";
  keeper.tick(kNow + 1s);
  keeper.tick(kNow + 2s);
  EXPECT_EQ(log,
            (std::vector<std::string>{"client blocked: client=ip:192.0.2.1", "client blocked: client=ip:192.0.2.2"}));
  EXPECT_EQ(keeper.blocks_made(), (std::map<std::string, std::uint64_t>{{"orders", 1}, {"per-ip", 1}}));
}

TEST(KnownKeeper, DropsExpiredItems) {
  KnownKeeper keeper;
  ASSERT_TRUE(keeper.adjust(adjustment("7"), kNow));
  ASSERT_TRUE(keeper.add(deny("192.0.2.1", kNow + 2h), kNow));
  EXPECT_TRUE(keeper.adjustments(kNow + 1h).empty()) << "before any tick";
  keeper.tick(kNow + 1h);
  EXPECT_TRUE(keeper.known().current()->adjustments().all().empty());
  EXPECT_FALSE(keeper.known().current()->entries().empty());
  keeper.tick(kNow + 2h);
  EXPECT_TRUE(keeper.known().current()->entries().empty());
}

TEST(KnownKeeper, LoadsSavedItemsThatHaveNotExpired) {
  MemoryArchive archive;
  {
    KnownKeeper keeper(&archive);
    ASSERT_TRUE(keeper.adjust(adjustment("7"), kNow));
    ASSERT_TRUE(keeper.adjust(adjustment("8", kNow + 1min), kNow));
    ASSERT_TRUE(keeper.add(deny("192.0.2.1"), kNow));
    keeper.block(deny("192.0.2.2", kNow + 1h));
    keeper.tick(kNow);
  }
  KnownKeeper keeper(&archive);
  ASSERT_TRUE(keeper.load(kNow + 1min));
  ASSERT_EQ(keeper.adjustments(kNow + 1min).size(), 1u);
  EXPECT_EQ(keeper.adjustments(kNow + 1min)[0], adjustment("7"));
  EXPECT_EQ(keeper.entries(List::deny, kNow + 1min), std::vector{deny("192.0.2.1")}) << "blocks are not saved";
}

TEST(KnownKeeper, RetriesAFailedSaveAndLogsItOnce) {
  MemoryArchive archive;
  std::vector<std::string> logged;
  KnownKeeper keeper(&archive, [&](std::string_view message) { logged.emplace_back(message); });
  archive.broken = true;
  ASSERT_TRUE(keeper.adjust(adjustment("7"), kNow)) << "in force all the same";
  keeper.tick(kNow);
  EXPECT_EQ(logged.size(), 1u);
  archive.broken = false;
  keeper.tick(kNow);
  EXPECT_EQ(archive.saved.adjustments.size(), 1u);
  const int saves = archive.saves;
  keeper.tick(kNow);
  EXPECT_EQ(archive.saves, saves);
}

TEST(KnownKeeper, LimitsTheNumberOfAdjustments) {
  MemoryArchive archive;
  for (std::size_t i = 0; i < bounds::adjustments_max - 1; ++i) {
    archive.saved.adjustments.push_back(adjustment(std::to_string(i)));
  }
  for (std::size_t i = 0; i < bounds::access_entries_max - 1; ++i) {
    AccessEntry entry;
    entry.apikey = std::to_string(i);
    archive.saved.entries.push_back(entry);
  }
  KnownKeeper keeper(&archive);
  ASSERT_TRUE(keeper.load(kNow));
  EXPECT_TRUE(keeper.adjust(adjustment("last"), kNow));
  EXPECT_EQ(keeper.adjust(adjustment("one more"), kNow).error().fault, Fault::too_large);
  EXPECT_TRUE(keeper.adjust(adjustment("0"), kNow)) << "it replaces an existing one";
  EXPECT_TRUE(keeper.add(deny("192.0.2.1"), kNow));
  EXPECT_EQ(keeper.add(deny("192.0.2.2"), kNow).error().fault, Fault::too_large);
}

TEST(KnownKeeper, BlocksBeyondTheLimitsWaitOrAreCounted) {
  KnownKeeper keeper;
  std::size_t made = 0;
  const auto block = [&](std::size_t many) {
    for (std::size_t i = 0; i < many; ++i) {
      AccessEntry entry;
      entry.apikey = std::to_string(made++);
      entry.expires = kNow + 1h;
      keeper.block(entry);
    }
  };
  const auto published = [&] { return keeper.known().current()->blocks().entries().size(); };
  block(bounds::known_at_once_max);
  EXPECT_EQ(published(), bounds::known_at_once_max);
  block(bounds::blocks_waiting_max);
  EXPECT_EQ(published(), bounds::known_at_once_max) << "the rest is published together";
  EXPECT_EQ(keeper.blocks_refused(), 0u);
  block(1);
  EXPECT_EQ(keeper.blocks_refused(), 1u);
  keeper.tick(kNow);
  EXPECT_EQ(published(), bounds::known_at_once_max + bounds::blocks_waiting_max);
  while (published() < bounds::blocks_max) {
    block(std::min(bounds::blocks_waiting_max, bounds::blocks_max - published()));
    keeper.tick(kNow);
  }
  EXPECT_EQ(keeper.blocks_refused(), 1u);
  EXPECT_EQ(published(), bounds::blocks_max);
  block(1);
  keeper.tick(kNow);
  EXPECT_EQ(keeper.blocks_refused(), 2u);
}

}  // namespace
}  // namespace weir::known_keeper_test
