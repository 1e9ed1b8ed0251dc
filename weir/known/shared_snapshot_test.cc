#include "weir/known/shared_snapshot.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/known/known_keeper.h"
#include "weir/known/known_line.h"
#include "weir/known/known_samples_test.h"

namespace weir::shared_snapshot_test {
namespace {

using namespace std::chrono_literals;
using List = AccessEntry::List;
using Part = KnownShare::Part;

AccessEntry deny(std::string apikey, std::optional<Wall> expires = {}) {
  AccessEntry entry;
  entry.apikey = std::move(apikey);
  entry.expires = expires;
  return entry;
}

// An in-process share. Calls wait until the test calls let_through().
struct FakeShare final : KnownShare {
  Texts parts[2];
  bool away = false;
  std::vector<std::function<void()>> waiting;

  void put(Part part, Texts texts, Done done) override {
    waiting.push_back([this, part, texts, done] {
      if (away) return done(Error{Fault::unavailable, "Redis cannot be reached"});
      for (const auto& [name, text] : texts) parts[static_cast<std::size_t>(part)].insert_or_assign(name, text);
      done(texts.size());
    });
  }
  void remove(Part part, std::vector<std::string> names, Done done) override {
    waiting.push_back([this, part, names, done] {
      if (away) return done(Error{Fault::unavailable, "Redis cannot be reached"});
      std::size_t count = 0;
      for (const std::string& name : names) count += parts[static_cast<std::size_t>(part)].erase(name);
      done(count);
    });
  }
  void let_through() {
    for (const auto& call : std::exchange(waiting, {})) call();
  }
  void teach(KnownKeeper& keeper) {
    for (const Part part : {Part::adjustments, Part::entries}) {
      keeper.apply_shared(part, parts[static_cast<std::size_t>(part)], kNow);
    }
  }
};

TEST(SharedSnapshot, SeparatesEntriesBlocksAndExpiredItems) {
  const AccessEntry entry = deny("K");
  const AccessEntry block = deny("K", kNow + 1min);
  const AccessEntry expired = deny("L", kNow);
  const SharedSnapshot snapshot = read_shared_snapshot(Part::entries,
                                                       {{selector_of(entry), print_line(entry)},
                                                        {block_name(block), print_line(block, true)},
                                                        {selector_of(expired), print_line(expired)}},
                                                       kNow);
  ASSERT_EQ(snapshot.entries.size(), 1u);
  ASSERT_EQ(snapshot.blocks.size(), 1u);
  EXPECT_EQ(snapshot.blocks.begin()->second, block);
  ASSERT_EQ(snapshot.expired.size(), 1u);
  EXPECT_EQ(snapshot.expired[0].name, selector_of(expired));
  EXPECT_EQ(snapshot.expired[0].expires, kNow);
  EXPECT_EQ(snapshot.skipped, 0u);
}

TEST(SharedSnapshot, SkipsDamagedMisnamedAndMisplacedItems) {
  const std::string line = print_line(adjustment("7"));
  const KnownShare::Texts texts = {{"orders:7", line}, {"orders:8", line}, {"orders:9", "nonsense"}};
  EXPECT_EQ(read_shared_snapshot(Part::adjustments, texts, kNow).adjustments.size(), 1u);
  EXPECT_EQ(read_shared_snapshot(Part::adjustments, texts, kNow).skipped, 2u);
  EXPECT_EQ(read_shared_snapshot(Part::entries, texts, kNow).skipped, 3u);
  EXPECT_FALSE(read_shared_snapshot(Part::entries, texts, kNow).first_skipped.empty());
}

TEST(SharedSnapshot, LimitsTheNumberOfAdjustments) {
  KnownShare::Texts texts;
  for (std::size_t i = 0; i < bounds::adjustments_max; ++i) {
    const Adjustment one = adjustment(std::to_string(i));
    texts.emplace(adjustment_name(one.limit, one.id), print_line(one));
  }
  EXPECT_EQ(read_shared_snapshot(Part::adjustments, texts, kNow).skipped, 0u);
  texts.emplace("orders:more", print_line(adjustment("more")));
  const SharedSnapshot snapshot = read_shared_snapshot(Part::adjustments, texts, kNow);
  EXPECT_EQ(snapshot.adjustments.size(), bounds::adjustments_max);
  EXPECT_EQ(snapshot.skipped, 1u);
}

TEST(SharedKnown, ChangeIsInForceOnlyIfTheShareAcceptsIt) {
  FakeShare share;
  KnownKeeper keeper;
  keeper.share_with(share);
  std::vector<Result<bool>> results;
  const auto record = [&](const Result<bool>& changed) { results.push_back(changed); };
  keeper.adjust(adjustment("7"), kNow, record);
  keeper.add(deny("K"), kNow, record);
  EXPECT_TRUE(results.empty());
  EXPECT_TRUE(keeper.adjustments(kNow).empty());
  share.let_through();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0] && results[1]);
  EXPECT_EQ(keeper.adjustments(kNow).size(), 1u);
  EXPECT_EQ(keeper.entries(List::deny, kNow).size(), 1u);
  share.away = true;
  keeper.unadjust("orders", "7", kNow, record);
  keeper.remove(deny("K"), kNow, record);
  keeper.adjust(adjustment("8"), kNow, record);
  share.let_through();
  ASSERT_EQ(results.size(), 5u);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(results[i].error().fault, Fault::unavailable);
  EXPECT_EQ(keeper.adjustments(kNow).size(), 1u);
  EXPECT_EQ(keeper.entries(List::deny, kNow).size(), 1u);
}

TEST(SharedKnown, ChangeOnOneServerReachesTheOther) {
  FakeShare share;
  KnownKeeper one;
  KnownKeeper two;
  one.share_with(share);
  two.share_with(share);
  const auto ignore = [](const Result<bool>&) {};
  one.add(deny("K"), kNow, ignore);
  one.block(deny("L", kNow + 1min));
  one.tick(kNow);
  EXPECT_EQ(one.entries(List::deny, kNow).size(), 1u) << "a block does not wait for the share";
  share.let_through();
  share.teach(two);
  EXPECT_EQ(two.entries(List::deny, kNow), one.entries(List::deny, kNow));
  EXPECT_EQ(two.known().current()->blocks().entries().size(), 1u);
  const std::uint64_t version = two.known().version();
  share.teach(two);
  EXPECT_EQ(two.known().version(), version) << "an unchanged state is not published";
  bool found = false;
  two.remove(deny("L"), kNow, [&](const Result<bool>& changed) { found = *changed; });
  share.let_through();
  EXPECT_TRUE(found);
  share.teach(one);
  EXPECT_EQ(one.entries(List::deny, kNow).size(), 1u);
}

TEST(SharedKnown, KeepsBlocksThatCouldNotBeSharedAndSharesThemLater) {
  FakeShare share;
  share.away = true;
  KnownKeeper keeper;
  keeper.share_with(share);
  const Wall now = BootClock::wall();
  keeper.block(deny("K", now + 1h));
  keeper.tick(now);
  share.let_through();
  keeper.apply_shared(Part::entries, {}, now);
  EXPECT_EQ(keeper.entries(List::deny, now).size(), 1u) << "it is not shared yet";
  share.away = false;
  keeper.tick(now);
  share.let_through();
  EXPECT_TRUE(share.parts[1].empty()) << "not retried at once";
  keeper.tick(now + 1min);
  share.let_through();
  EXPECT_EQ(share.parts[1].size(), 1u);
  EXPECT_EQ(keeper.texts(Part::entries, now), share.parts[1]);
  keeper.apply_shared(Part::entries, {}, now);
  EXPECT_TRUE(keeper.entries(List::deny, now).empty()) << "shared, then removed by another server";
}

TEST(SharedKnown, LogsUnreadableItemsOnce) {
  std::vector<std::string> logged;
  KnownKeeper keeper(nullptr, [&](std::string_view message) { logged.emplace_back(message); });
  for (int i = 0; i < 3; ++i) keeper.apply_shared(Part::adjustments, {{"orders:7", "nonsense"}}, kNow);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged[0].find("orders:7"), std::string::npos);
  keeper.apply_shared(Part::adjustments, {}, kNow);
  EXPECT_EQ(logged.size(), 1u);
}

}  // namespace
}  // namespace weir::shared_snapshot_test
