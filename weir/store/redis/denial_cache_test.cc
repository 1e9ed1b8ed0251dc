#include "weir/store/redis/denial_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weir::redis::denial_cache_test {
namespace {

using namespace std::chrono_literals;

constexpr std::array<Decision, 1> kDenied = {Decision{false, 5, 0, 300ms, 5s}};

class Denials : public testing::Test {
 protected:
  DenialCache::Found find(std::string_view bucket, std::string_view question, Time now) {
    return cache_.find(bucket, question, now, denial_);
  }
  bool knows(std::string_view bucket, std::string_view question, Time now) {
    return find(bucket, question, now) == DenialCache::Found::denied;
  }
  void remember(std::string_view bucket, Duration retry_after, Time at, std::string_view question = "q") {
    cache_.remember(bucket, question, kDenied, retry_after, at, at, cache_.serial());
  }

  DenialCache cache_{HashKey{1, 2}, 100};
  DenialCache::Denial denial_;
};

TEST_F(Denials, LiveUntilTheSameQuestionCouldPass) {
  remember("a", 300ms, Time{10s});
  EXPECT_TRUE(knows("a", "q", Time{10s} + 300ms - 1ns));
  EXPECT_FALSE(knows("a", "q", Time{10s} + 300ms));
}

TEST_F(Denials, LiveNoLongerThanASecondFromSending) {
  cache_.remember("a", "q", kDenied, 1h, Time{10s}, Time{10s} + 100ms, cache_.serial());
  EXPECT_TRUE(knows("a", "q", Time{11s} - 1ns));
  EXPECT_FALSE(knows("a", "q", Time{11s}));
  cache_.remember("b", "q", kDenied, kNever, Time{10s}, Time{11s}, cache_.serial());
  EXPECT_FALSE(knows("b", "q", Time{11s})) << "its reply came too late to be of use";
}

TEST_F(Denials, AfterTheirSecondAreAskedForByOneWhileTheOthersStillHearThem) {
  remember("a", 1h, Time{10s});
  EXPECT_EQ(find("a", "q", Time{11s}), DenialCache::Found::ask_again);
  EXPECT_TRUE(knows("a", "q", Time{11s}));
  EXPECT_TRUE(knows("a", "q", Time{11s} + kAskAgainMax - 1ns));
  EXPECT_EQ(find("a", "q", Time{11s} + kAskAgainMax), DenialCache::Found::nothing) << "no answer came: all ask";
  remember("a", 1h, Time{10s});
  EXPECT_EQ(find("a", "q", Time{11s}), DenialCache::Found::ask_again);
  cache_.remember("a", "q", kDenied, 1h, Time{11s}, Time{11s} + 1ms, cache_.serial());
  EXPECT_TRUE(knows("a", "q", Time{12s} - 1ns)) << "denied again: for another second";
  EXPECT_EQ(find("a", "q", Time{12s}), DenialCache::Found::ask_again);
  cache_.drop("a");
  EXPECT_EQ(find("a", "q", Time{12s}), DenialCache::Found::nothing) << "it passed";
}

TEST_F(Denials, EndWhenAnotherQuestionPassed) {
  remember("a", 1h, Time{10s});
  cache_.drop("a", "q");
  EXPECT_TRUE(knows("a", "q", Time{10s} + 1ms)) << "denied while the same question passed: after it";
  cache_.drop("b", "other");
  EXPECT_TRUE(knows("a", "q", Time{10s} + 1ms));
  cache_.drop("a", "other");
  EXPECT_EQ(find("a", "q", Time{10s} + 1ms), DenialCache::Found::nothing);
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(Denials, ThatMayPassByThenAreNotHeardWhileOneAsks) {
  remember("a", 1050ms, Time{10s});
  EXPECT_EQ(find("a", "q", Time{11s}), DenialCache::Found::ask_again);
  EXPECT_TRUE(knows("a", "q", Time{10s} + 1050ms - 1ns));
  EXPECT_FALSE(knows("a", "q", Time{10s} + 1050ms));
}

TEST_F(Denials, BelongToOneBucketItsNumbersAndItsCost) {
  remember("a", 1s, Time{10s});
  EXPECT_FALSE(knows("b", "q", Time{10s}));
  EXPECT_FALSE(knows("a", "other numbers", Time{10s}));
}

TEST_F(Denials, AreForgottenWhenTheBucketIsRefundedOrReset) {
  remember("a", 1s, Time{10s});
  cache_.forget("a");
  EXPECT_FALSE(knows("a", "q", Time{10s}));
  remember("a", 1s, Time{10s});
  EXPECT_TRUE(knows("a", "q", Time{10s} + 500ms));
}

TEST_F(Denials, OfQuestionsSentBeforeTheBucketWasForgottenAreNotRemembered) {
  const std::uint64_t before = cache_.serial();
  cache_.forget("a");
  cache_.remember("a", "q", kDenied, 1s, Time{10s}, Time{10s}, before);
  EXPECT_FALSE(knows("a", "q", Time{10s}));
  cache_.remember("b", "q", kDenied, 1s, Time{10s}, Time{10s}, before);
  EXPECT_TRUE(knows("b", "q", Time{10s}));
  cache_.forget_all();
  EXPECT_EQ(cache_.size(), 0u);
  cache_.remember("b", "q", kDenied, 1s, Time{10s}, Time{10s}, before);
  EXPECT_FALSE(knows("b", "q", Time{10s}));
  remember("b", 1s, Time{10s});
  EXPECT_TRUE(knows("b", "q", Time{10s}));
}

TEST_F(Denials, TellWhatWasDecidedAndWhen) {
  remember("a", 300ms, Time{10s});
  ASSERT_TRUE(knows("a", "q", Time{10s} + 1ms));
  EXPECT_EQ(denial_.sent, Time{10s});
  ASSERT_EQ(denial_.decisions.size(), 1u);
  EXPECT_EQ(denial_.decisions[0], kDenied[0]);
}

TEST_F(Denials, StayWithinTheirBoundAndTheOldestGoes) {
  for (int i = 0; i < 100; ++i) remember(std::to_string(i), 1s, Time{10s} + i * 1us);
  EXPECT_EQ(cache_.size(), 100u);
  EXPECT_TRUE(knows("0", "q", Time{10s} + 1ms));
  remember("one past", 1s, Time{10s} + 1ms);
  EXPECT_EQ(cache_.size(), 100u);
  EXPECT_FALSE(knows("0", "q", Time{10s} + 1ms));
  EXPECT_TRUE(knows("1", "q", Time{10s} + 1ms));
}

TEST_F(Denials, RememberedAnewManyTimesStillTakeNoRoom) {
  for (int i = 0; i < 10'000; ++i) remember("a", 1s, Time{10s} + i * 1us);
  EXPECT_EQ(cache_.size(), 1u);
  remember("b", 1s, Time{20s});
  EXPECT_EQ(cache_.size(), 1u) << "the old one is gone with its second";
}

TEST(DenialStripes, StayWithinTheirBoundTogether) {
  DenialCache cache(HashKey{1, 2}, 4096);
  for (int i = 0; i < 20'000; ++i) {
    cache.remember(std::to_string(i), "q", kDenied, 1s, Time{10s}, Time{10s}, cache.serial());
    ASSERT_LE(cache.size(), 4096u);
  }
  EXPECT_EQ(cache.size(), 4096u);
  for (int i = 0; i < 20'000; ++i) cache.forget(std::to_string(i));
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace weir::redis::denial_cache_test
