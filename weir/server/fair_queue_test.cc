#include "weir/server/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace weir::fair_queue_test {
namespace {

class FairQueueTest : public testing::Test {
 protected:
  LaneQuestion& ask(Lane& lane, std::size_t buckets = 1) {
    LaneQuestion& question = questions_.emplace_back();
    question.buckets = buckets;
    queue_.add(lane, question);
    queue_.wait(question);
    return question;
  }
  Lane* serve() {
    LaneQuestion* const next = queue_.next();
    if (next == nullptr) return nullptr;
    queue_.take(*next);
    return next->lane;
  }

  std::deque<LaneQuestion> questions_;
  FairQueue queue_;
};

TEST_F(FairQueueTest, ReturnsNothingWhenNothingWaits) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.next(), nullptr);
  EXPECT_EQ(queue_.oldest(), nullptr);
}

TEST_F(FairQueueTest, ATurnIsSixteenBucketsWhateverTheSizeOfTheQuestions) {
  Lane ones;
  Lane fives;
  for (int i = 0; i < 400; ++i) ask(ones);
  for (int i = 0; i < 80; ++i) ask(fives, 5);
  std::size_t of_ones = 0;
  std::size_t of_fives = 0;
  for (int i = 0; i < 240; ++i) (serve() == &ones ? of_ones : of_fives) += 1;
  of_fives *= 5;
  EXPECT_NEAR(static_cast<double>(of_ones), static_cast<double>(of_fives), bounds::buckets_per_turn);
}

TEST_F(FairQueueTest, ALaneWithNothingInFlightGoesFirst) {
  Lane flood;
  Lane polite;
  for (int i = 0; i < 100; ++i) ask(flood);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(serve(), &flood);
  ask(polite);
  EXPECT_EQ(serve(), &polite);
  EXPECT_EQ(serve(), &flood);
  ask(polite);
  std::vector<Lane*> served;
  for (int i = 0; i < 17; ++i) served.push_back(serve());
  EXPECT_EQ(std::count(served.begin(), served.end(), &polite), 1)
      << "it has a question in flight and waits for its turn";
}

TEST_F(FairQueueTest, LaneGoesFirstAgainWhenItsQuestionsAreAnswered) {
  Lane flood;
  Lane polite;
  for (int i = 0; i < 100; ++i) ask(flood);
  LaneQuestion& landing = ask(polite);
  queue_.next();
  while (serve() != &polite) {
  }
  ask(polite);
  queue_.remove(landing);
  EXPECT_EQ(serve(), &polite);
}

TEST_F(FairQueueTest, OldestQuestionIsTheFirstOfItsLane) {
  Lane one;
  Lane other;
  LaneQuestion& first = ask(one);
  LaneQuestion& second = ask(other);
  ask(one);
  EXPECT_EQ(queue_.oldest(), &first);
  queue_.remove(first);
  EXPECT_EQ(queue_.oldest(), &second);
  queue_.remove(second);
  EXPECT_EQ(other.any(), nullptr);
  EXPECT_EQ(one.waiting(), 1u);
  EXPECT_EQ(serve(), &one);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(FairQueueTest, LanePassedOverLosesItsTurn) {
  Lane one;
  Lane other;
  ask(one);
  ask(other);
  queue_.pass_over(*queue_.next());
  EXPECT_EQ(serve(), &other);
  EXPECT_EQ(serve(), &one);
}

// 64 connections: half of them have at most 16 unanswered questions, the rest up to 4096. The store accepts 800 buckets
// at once and answers in order.
TEST_F(FairQueueTest, FloodersWithDepth16And4096GetEqualShares) {
  constexpr std::size_t kInFlight = 800;
  std::vector<Lane> lanes(64);
  std::vector<std::size_t> unanswered(lanes.size());
  std::vector<int> served(lanes.size());
  std::deque<LaneQuestion*> in_flight;
  for (int step = 0; step < 64 * 1000; ++step) {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const std::size_t depth = i % 2 == 0 ? 16 : 4096;
      while (unanswered[i] < depth && lanes[i].waiting() < bounds::waiting_max) {
        ask(lanes[i]);
        ++unanswered[i];
      }
    }
    while (in_flight.size() < kInFlight) {
      LaneQuestion* const next = queue_.next();
      queue_.take(*next);
      in_flight.push_back(next);
    }
    const auto lane = static_cast<std::size_t>(in_flight.front()->lane - lanes.data());
    queue_.remove(*in_flight.front());
    in_flight.pop_front();
    --unanswered[lane];
    ++served[lane];
  }
  for (const int count : served) EXPECT_NEAR(count, 1000, 200);
  while (!in_flight.empty()) {
    queue_.remove(*in_flight.front());
    in_flight.pop_front();
  }
}

}  // namespace
}  // namespace weir::fair_queue_test
