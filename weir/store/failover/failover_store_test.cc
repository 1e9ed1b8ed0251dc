#include "weir/store/failover/failover_store.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "weir/store/memory/memory_store.h"

namespace weir::failover_store_test {
namespace {

using namespace std::chrono_literals;

// A store that answers from memory until a test makes it fail like a remote store.
class Breakable final : public Store {
 public:
  explicit Breakable(Store& real) : real_(real) {}

  void charge(std::span<const Question> batch, Now now, Answers& answers) override {
    for (const Question& question : batch) {
      if (holds) {
        held.emplace_back(question, &answers);
      } else if (fault) {
        answers.answer(question.ticket, Error{*fault, "the words of the failure"});
      } else {
        real_.charge({&question, 1}, now, answers);
      }
    }
  }

  // Answers the held questions, the latest first.
  void release(Now now) {
    for (auto waiting = std::exchange(held, {}); !waiting.empty(); waiting.pop_back()) {
      const auto& [question, answers] = waiting.back();
      if (fault) {
        answers->answer(question.ticket, Error{*fault, "the words of the failure"});
      } else {
        real_.charge({&question, 1}, now, *answers);
      }
    }
  }

  std::optional<Fault> fault;
  bool holds = false;
  std::vector<std::pair<Question, Answers*>> held;

 private:
  Store& real_;
};

struct Heard final : Answers {
  explicit Heard(const Charge& charged) : charge(charged) {}
  void answer(Ticket ticket, const Result<Verdict>& verdict) override { all.emplace_back(ticket, verdict); }
  Question question(Ticket ticket) const override { return {ticket, {&charge, 1}}; }
  const Charge& charge;
  std::vector<std::pair<Ticket, Result<Verdict>>> all;
};

class FailoverStoreTest : public testing::Test {
 protected:
  FailoverStoreTest() {
    charge_.rate = RateCharge{"a", Limit::per_hour(2)};
    auto primary = std::make_unique<Breakable>(remote_);
    primary_ = primary.get();
    store_.emplace(std::move(primary), Fallback(*here_, 1, counts_, clock_), clock_);
  }

  void ask(Ticket ticket) {
    const Question question{ticket, {&charge_, 1}};
    store_->charge({&question, 1}, clock_.now(), heard_);
  }
  Result<Verdict> answer() {
    heard_.all.clear();
    ask(7);
    EXPECT_EQ(heard_.all.size(), 1u);
    EXPECT_EQ(heard_.all.front().first, 7u);
    return heard_.all.front().second;
  }

  ManualClock clock_{Time{10s}};
  FallbackCounts counts_;
  std::unique_ptr<Table> there_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}));
  std::unique_ptr<Table> here_ = std::move(*Table::create({.buckets_max = 1000, .huge_pages = false}));
  MemoryStore remote_{*there_, clock_};
  Breakable* primary_ = nullptr;
  std::optional<FailoverStore> store_;
  Charge charge_;
  Heard heard_{charge_};
};

TEST_F(FailoverStoreTest, HandsOnWhatTheStoreAnswers) {
  EXPECT_EQ(answer()->all[0].strictest().remaining, 1);
  EXPECT_EQ(answer()->all[0].strictest().remaining, 0);
  const auto denied = answer();
  EXPECT_FALSE(denied->allowed);
  EXPECT_FALSE(denied->degraded);
}

TEST_F(FailoverStoreTest, GivesThePolicyWhereTheStoreFails) {
  for (const Fault fault : {Fault::timeout, Fault::unavailable}) {
    primary_->fault = fault;
    charge_.on_failure = FailurePolicy::pass_through;
    EXPECT_TRUE(answer()->degraded);
    charge_.on_failure = FailurePolicy::fail_closed;
    EXPECT_EQ(answer().error().fault, Fault::unavailable);
  }
  charge_.on_failure = FailurePolicy::in_memory_fallback;
  EXPECT_EQ(answer()->all[0].strictest().remaining, 1);
  EXPECT_EQ(answer()->all[0].strictest().remaining, 0);
  EXPECT_FALSE(answer()->allowed);
  EXPECT_EQ(counts_.of(FailurePolicy::pass_through), 2u);
  EXPECT_EQ(counts_.of(FailurePolicy::fail_closed), 2u);
  EXPECT_EQ(counts_.of(FailurePolicy::in_memory_fallback), 3u);
}

TEST_F(FailoverStoreTest, LeavesOtherErrorsAsTheyAre) {
  primary_->fault = Fault::invalid;
  EXPECT_EQ(answer().error(), (Error{Fault::invalid, "the words of the failure"}));
}

TEST_F(FailoverStoreTest, OverloadIsNoFailureUnderAnyPolicy) {
  primary_->fault = Fault::overloaded;
  for (const FailurePolicy policy :
       {FailurePolicy::pass_through, FailurePolicy::fail_closed, FailurePolicy::in_memory_fallback}) {
    charge_.on_failure = policy;
    EXPECT_EQ(answer().error().fault, Fault::overloaded);
    heard_.all.clear();
    store_->give_up({9, {&charge_, 1}}, heard_);
    ASSERT_EQ(heard_.all.size(), 1u);
    EXPECT_EQ(heard_.all[0].first, 9u);
    EXPECT_EQ(heard_.all[0].second.error().fault, Fault::overloaded);
    EXPECT_EQ(counts_.of(policy), 0u);
  }
}

TEST_F(FailoverStoreTest, AnswersLateAndOutOfOrderReachWhoeverAsked) {
  primary_->holds = true;
  for (Ticket ticket = 100; ticket < 103; ++ticket) ask(ticket);
  EXPECT_TRUE(heard_.all.empty());
  primary_->release(clock_.now());
  ASSERT_EQ(heard_.all.size(), 3u);
  EXPECT_EQ(heard_.all[0].first, 102u);
  EXPECT_EQ(heard_.all[2].first, 100u);
  EXPECT_FALSE(heard_.all[2].second->allowed);
  ask(200);
  primary_->fault = Fault::timeout;
  primary_->release(clock_.now());
  ASSERT_EQ(heard_.all.size(), 4u);
  EXPECT_EQ(heard_.all[3].first, 200u);
  EXPECT_TRUE(heard_.all[3].second->degraded);
}

// An answer may trigger the next question.
struct Chatty final : Answers {
  Chatty(FailoverStore& of, const Charge& charged, const Clock& by) : store(of), charge(charged), clock(by) {}
  void answer(Ticket ticket, const Result<Verdict>&) override {
    heard.push_back(ticket);
    if (ticket >= 5) return;
    const Question next{ticket + 1, {&charge, 1}};
    store.charge({&next, 1}, clock.now(), *this);
  }
  FailoverStore& store;
  const Charge& charge;
  const Clock& clock;
  std::vector<Ticket> heard;
};

TEST_F(FailoverStoreTest, MayBeAskedFromWithinAnAnswer) {
  Chatty chatty(*store_, charge_, clock_);
  const Question first{1, {&charge_, 1}};
  store_->charge({&first, 1}, clock_.now(), chatty);
  EXPECT_EQ(chatty.heard, (std::vector<Ticket>{1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace weir::failover_store_test
