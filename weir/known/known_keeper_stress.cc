// Writers, blockers and readers at once: every reader sees an acknowledged change, and none sees half of one.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weir/known/known_keeper.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Wall kNow{1000s};
constexpr int kRounds = 2000;

TEST(KnownKeeperStress, EveryReaderSeesAnAcknowledgedChange) {
  KnownKeeper keeper;
  std::atomic<std::int64_t> acknowledged{0};  // the burst of the last adjustment that was acknowledged
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> changes_seen{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      Reader<Known> reader(keeper.known());
      while (!over.load()) {
        const std::int64_t promised = acknowledged.load();
        if (reader.refresh()) changes_seen.fetch_add(1);
        const Adjustment* const found = reader.get()->adjustments().find({"orders", "7"}, kNow);
        ASSERT_TRUE(promised == 0 || (found != nullptr && *found->burst >= promised));
        // Count and burst are written together.
        ASSERT_TRUE(found == nullptr || *found->count == *found->burst);
        looks.fetch_add(1);
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; !over.load(); ++i) {
      AccessEntry entry;
      entry.apikey = std::to_string(i % 100);
      entry.expires = kNow + 1h;
      keeper.block(entry);
      if (i % 50 == 0) keeper.tick(kNow);
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    Adjustment one;
    one.limit = "orders";
    one.id = "7";
    one.burst = one.count = i;
    one.expires = kNow + 1h;
    ASSERT_TRUE(keeper.adjust(one, kNow));
    acknowledged.store(i);
    if (i % 100 == 0) std::this_thread::yield();
  }
  while (looks.load() < 1000) std::this_thread::yield();
  over.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(changes_seen.load(), 0u) << "no reader saw a change: the test shows nothing";
  EXPECT_LE(keeper.entries(AccessEntry::List::deny, kNow).size(), 100u);
}

// Applies changes on its own thread and calls apply_shared() again and again, like the real share.
class BusyShare final : public KnownShare {
 public:
  explicit BusyShare(KnownKeeper& keeper) : keeper_(keeper), thread_([this] { work(); }) {}
  ~BusyShare() override {
    over_.store(true);
    thread_.join();
  }
  void put(Part part, Texts texts, Done done) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back([this, part, texts, done] {
      for (const auto& [name, text] : texts) parts_[static_cast<std::size_t>(part)].insert_or_assign(name, text);
      done(texts.size());
    });
  }
  void remove(Part part, std::vector<std::string> names, Done done) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back([this, part, names, done] {
      std::size_t count = 0;
      for (const std::string& name : names) count += parts_[static_cast<std::size_t>(part)].erase(name);
      done(count);
    });
  }

 private:
  void work() {
    while (!over_.load()) {
      std::vector<std::function<void()>> calls;
      {
        const std::lock_guard lock(mutex_);
        calls.swap(waiting_);
      }
      for (const auto& call : calls) call();
      for (const Part part : {Part::adjustments, Part::entries}) {
        keeper_.apply_shared(part, parts_[static_cast<std::size_t>(part)], kNow);
      }
    }
  }

  KnownKeeper& keeper_;
  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
  Texts parts_[2];
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(KnownKeeperStress, SharedChangeStaysInForceDuringConstantUpdates) {
  KnownKeeper keeper;
  BusyShare share(keeper);
  keeper.share_with(share);
  for (int i = 1; i <= kRounds / 10; ++i) {
    Adjustment one;
    one.limit = "orders";
    one.id = "7";
    one.burst = one.count = i;
    one.expires = kNow + 1h;
    AccessEntry entry;
    entry.apikey = std::to_string(i % 100);
    entry.expires = kNow + 1h;
    keeper.block(entry);
    keeper.tick(kNow);
    std::atomic<bool> taken{false};
    keeper.adjust(one, kNow, [&](const Result<bool>& changed) { taken.store(changed.has_value()); });
    while (!taken.load()) std::this_thread::yield();
    const auto found = keeper.adjustments(kNow);
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(*found[0].burst, i);
    ASSERT_FALSE(keeper.entries(AccessEntry::List::deny, kNow).empty());
  }
}

}  // namespace
}  // namespace weir
