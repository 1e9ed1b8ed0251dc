// How clients are served by a store that is slower than they are. Time is simulated, in steps of a millisecond.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/clock.h"
#include "weir/config/parse.h"
#include "weir/known/known_keeper.h"
#include "weir/redis/flight_window.h"
#include "weir/server/pipeline.h"

namespace weir::overload_test {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTimeout = 250ms;

// Answers one bucket after another, at a fixed time per bucket, and has a flight window like Redis.
class BusyStore final : public Store {
 public:
  explicit BusyStore(const Clock& clock) : clock_(clock) {}

  void charge(std::span<const Question> batch, Now now, Answers& answers) override {
    answers_ = &answers;
    for (const Question& question : batch) {
      const std::size_t buckets = std::max<std::size_t>(question.charges.size(), 1);
      if (stopped_ && now.time - heard_ > kTimeout) {
        answers.answer(question.ticket, Error{Fault::unavailable, "down"});
        continue;
      }
      if (lends_) {
        answers.answer(question.ticket, Verdict{});
        continue;
      }
      window_.sent(buckets, now.time);
      in_flight_.push_back({question, now.time, buckets, false});
      charged_ += question.charges.empty() ? 0 : 1;
      if (question.mode == Mode::refund) remembers_denials_ = false;
    }
  }
  Room room(const Question& question, std::size_t ahead) override {
    const Time now = clock_.time();
    if (stopped_ && now - heard_ > kTimeout) return Room::yes;
    return window_.admits(question.charges.size(), ahead, now) ? Room::yes : Room::none;
  }
  bool answer_at_hand(const Question& question, Now, Answers& answers) override {
    if (question.mode == Mode::refund) remembers_denials_ = false;
    if (!remembers_denials_ || question.mode != Mode::spend) return false;
    Verdict verdict;
    verdict.allowed = false;
    verdict.all.push_back(Decision{false, 1, 0, 1s, 1s});
    answers.answer(question.ticket, verdict);
    return true;
  }
  Duration patience() const noexcept override { return kTimeout * 3 / 4; }
  void give_up(const Question& question, Answers& answers) override {
    if (clock_.time() - heard_ <= kTimeout) return Store::give_up(question, answers);
    answers.answer(question.ticket, Error{Fault::unavailable, "silent"});
  }

  // Answers what is done by now.
  void work() {
    const Time now = clock_.time();
    while (!stopped_ && !in_flight_.empty()) {
      const Sent sent = in_flight_.front();
      const Time done = std::max(free_at_, sent.at) + per_bucket_ * static_cast<int>(sent.buckets);
      if (done > now) break;
      free_at_ = done;
      heard_ = now;
      in_flight_.pop_front();
      window_.answered(sent.buckets, now);
      if (!sent.given_up) answers_->answer(sent.question.ticket, Verdict{});
    }
    // Like a link: the caller has given up, but the store still works on it.
    for (Sent& sent : in_flight_) {
      if (now - sent.question.asked < kTimeout || std::exchange(sent.given_up, true)) continue;
      answers_->answer(sent.question.ticket, Error{Fault::timeout, "late"});
    }
  }

  void take_for_each(Duration duration) { per_bucket_ = duration; }
  void stop() { stopped_ = true; }
  void lend() { lends_ = true; }  // from here on charge() answers from a lease
  void remember_denials() { remembers_denials_ = true; }
  std::size_t charged() const { return charged_; }

 private:
  struct Sent {
    Question question;
    Time at;
    std::size_t buckets;
    bool given_up = false;
  };

  const Clock& clock_;
  Answers* answers_ = nullptr;
  redis::FlightWindow window_{kTimeout};
  std::deque<Sent> in_flight_;
  Duration per_bucket_ = 18us;
  Time free_at_{};
  Time heard_{};
  bool stopped_ = false;
  bool lends_ = false;
  bool remembers_denials_ = false;
  std::size_t charged_ = 0;
};

// Keeps a fixed number of questions unanswered.
class Client final : public Asker {
 public:
  Client(const Clock& clock, std::size_t depth) : clock_(clock), depth_(depth) {}

  void ask(Pipeline& pipeline) {
    // Bounded, because a store may fail immediately.
    for (std::size_t i = 0; i < 2 * bounds::waiting_max && asked_.size() < depth_ && !must_wait(); ++i) {
      ask(pipeline, Mode::spend);
    }
  }
  void ask(Pipeline& pipeline, Mode mode) {
    const Query query{OwnBucket{"somebody", Limit::per_second(1)}, mode};
    asked_[next_] = clock_.time();
    pipeline.ask(next_++, query, *this, clock_.now());
  }
  void answered(std::uint64_t sequence, const Result<Answer>& answer) override {
    const Duration took = clock_.time() - asked_.at(sequence);
    asked_.erase(sequence);
    slowest = std::max(slowest, took);
    times.push_back(took);
    if (answer) {
      ++decided;
      denied += answer->verdict.allowed ? 0 : 1;
    } else if (answer.error().fault == Fault::overloaded) {
      ++overloaded;
    } else {
      ++failed;
    }
  }
  Duration percentile(int percent) {
    std::ranges::sort(times);
    return times.at(times.size() * static_cast<std::size_t>(percent) / 100);
  }
  std::size_t unanswered() const { return asked_.size(); }

  int decided = 0;
  int denied = 0;
  int overloaded = 0;
  int failed = 0;
  Duration slowest{};
  std::vector<Duration> times;

 private:
  const Clock& clock_;
  std::size_t depth_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Time> asked_;
};

class OverloadTest : public testing::Test {
 protected:
  OverloadTest() { pipeline_.refresh(); }
  ~OverloadTest() override {
    for (const auto& client : clients_) pipeline_.forget(*client);
  }

  Client& connect(std::size_t depth) { return *clients_.emplace_back(std::make_unique<Client>(clock_, depth)); }

  void run(Duration duration) {
    for (const Time end = clock_.time() + duration; clock_.time() < end;) {
      clock_.advance(1ms);
      store_.work();
      for (const auto& client : clients_) client->ask(pipeline_);
      pipeline_.flush(clock_.now());
    }
  }
  template <class Count>
  int sum(Count count) const {
    int all = 0;
    for (const auto& client : clients_) all += (*client).*count;
    return all;
  }

  static std::shared_ptr<const config::Loaded> no_limits() {
    return std::make_shared<const config::Loaded>(
        std::get<config::Loaded>(config::parse("limits: {}", "test.yaml", {})));
  }

  ManualClock clock_{Time{10s}, Wall{std::chrono::hours{1000}}};
  BusyStore store_{clock_};
  LoopMetrics metrics_;
  Published<config::Loaded> configuration_{no_limits()};
  KnownKeeper keeper_;
  Pipeline pipeline_{configuration_, keeper_.known(), store_, metrics_, clock_};
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(OverloadTest, AnswersAPoliteClientQuicklyDuringAFlood) {
  for (const int flooders : {4, 12, 48}) {
    Client& polite = connect(1);
    for (int i = 0; i < flooders; ++i) connect(4096);
    run(1s);
    polite.times.clear();
    run(1s);
    EXPECT_EQ(polite.failed + polite.overloaded, 0);
    EXPECT_LE(polite.percentile(99), kTimeout / 4);
  }
  EXPECT_EQ(sum(&Client::failed), 0);
  EXPECT_GE(sum(&Client::decided), 6 * 1s / 18us * 95 / 100) << "the store is never idle";
}

TEST_F(OverloadTest, AnswersWithinTheTimeoutAndOverloadedAnswersChargeNothing) {
  store_.take_for_each(2ms);
  for (int i = 0; i < 16; ++i) connect(4096);
  run(3s);
  EXPECT_GT(sum(&Client::overloaded), 0);
  EXPECT_EQ(static_cast<int>(metrics_.overloaded.value()), sum(&Client::overloaded));
  EXPECT_EQ(metrics_.store_errors.value(), 0u);
  EXPECT_EQ(sum(&Client::failed), 0);
  for (const auto& client : clients_) EXPECT_LE(client->slowest, kTimeout + 10ms);
  run(1s);
  const auto in_flight = store_.charged() - static_cast<std::size_t>(sum(&Client::decided));
  EXPECT_LE(in_flight, bounds::flight_window_min) << "only decided questions and those in flight were charged";
}

TEST_F(OverloadTest, FloodersWithDepth16And4096GetEqualShares) {
  for (int i = 0; i < 64; ++i) connect(i % 2 == 0 ? 16 : 4096);
  run(1s);
  for (const auto& client : clients_) client->decided = 0;
  run(2s);
  const double share = sum(&Client::decided) / 64.0;
  for (const auto& client : clients_) EXPECT_NEAR(client->decided, share, share / 5);
}

TEST_F(OverloadTest, KeepsDecidingWhenTheStoreSlowsDownTenfold) {
  Client& polite = connect(1);
  for (int i = 0; i < 16; ++i) connect(4096);
  run(1s);
  store_.take_for_each(180us);
  run(500ms);
  polite.times.clear();
  run(2s);
  EXPECT_EQ(sum(&Client::failed), 0);
  EXPECT_EQ(polite.overloaded, 0);
  EXPECT_LE(polite.percentile(99), kTimeout / 4);
}

TEST_F(OverloadTest, FailsWithinTheTimeoutWhenTheStoreStopsDuringAFlood) {
  for (int i = 0; i < 4; ++i) connect(4096);
  run(1s);
  for (const auto& client : clients_) client->slowest = {};
  store_.stop();
  run(kTimeout + 20ms);
  const int overloaded = sum(&Client::overloaded);
  run(100ms);
  EXPECT_EQ(sum(&Client::overloaded), overloaded) << "a silent store is not an overloaded one";
  EXPECT_GT(sum(&Client::failed), 0);
  for (const auto& client : clients_) EXPECT_LE(client->slowest, kTimeout + 10ms);
}

TEST_F(OverloadTest, AnswersACachedDenialAtOnce) {
  for (int i = 0; i < 4; ++i) connect(4096);
  run(100ms);
  store_.remember_denials();
  Client& other = connect(0);
  other.ask(pipeline_, Mode::spend);
  EXPECT_EQ(other.denied, 1);
}

TEST_F(OverloadTest, DoesNotAnswerFromTheDenialCacheAfterAPipelinedRefund) {
  for (int i = 0; i < 4; ++i) connect(4096);
  run(100ms);
  store_.remember_denials();
  Client& other = connect(0);
  other.ask(pipeline_, Mode::refund);
  store_.remember_denials();  // by a question that was sent before the refund
  other.ask(pipeline_, Mode::spend);
  EXPECT_EQ(other.unanswered(), 2u);
  run(100ms);
  EXPECT_EQ(other.decided, 2);
  EXPECT_EQ(other.denied, 0);
}

TEST_F(OverloadTest, PausesAConnectionWith64WaitingQuestions) {
  Client& client = connect(0);
  while (client.unanswered() < bounds::flight_window_first) client.ask(pipeline_, Mode::spend);
  for (std::size_t i = 1; i < bounds::waiting_max; ++i) client.ask(pipeline_, Mode::spend);
  EXPECT_FALSE(client.must_wait());
  client.ask(pipeline_, Mode::spend);
  EXPECT_TRUE(client.must_wait());
  run(20ms);
  EXPECT_FALSE(client.must_wait());
  EXPECT_EQ(client.unanswered(), 0u);
}

TEST_F(OverloadTest, WakesUpForTheOldestQuestion) {
  Client& client = connect(0);
  EXPECT_EQ(pipeline_.wake_at(), Time::max());
  while (client.unanswered() < bounds::flight_window_first) client.ask(pipeline_, Mode::spend);
  EXPECT_EQ(pipeline_.wake_at(), Time::max()) << "in flight: the store answers it";
  client.ask(pipeline_, Mode::spend);
  EXPECT_EQ(pipeline_.wake_at(), clock_.time() + kTimeout * 3 / 4);
}

TEST_F(OverloadTest, OneFlushSendsEverythingThatALeaseAnswers) {
  store_.take_for_each(1ms);
  for (int i = 0; i < 4; ++i) connect(4096);
  run(100ms);
  clock_.advance(50ms);
  store_.work();
  std::size_t waiting = 0;
  for (const auto& client : clients_) waiting += client->unanswered();
  ASSERT_GT(waiting, 2 * bounds::waiting_max);
  store_.lend();
  pipeline_.flush(clock_.now());
  for (const auto& client : clients_) EXPECT_EQ(client->unanswered(), 0u);
  EXPECT_EQ(sum(&Client::overloaded), 0);
}

TEST_F(OverloadTest, DropsWaitingQuestionsOfAClosedConnectionExceptRefunds) {
  for (int i = 0; i < 4; ++i) connect(4096);
  run(100ms);
  auto gone = std::make_unique<Client>(clock_, 0);
  for (int i = 0; i < 10; ++i) gone->ask(pipeline_, Mode::spend);
  gone->ask(pipeline_, Mode::refund);
  const std::size_t before = store_.charged();
  pipeline_.forget(*gone);
  EXPECT_EQ(gone->times.size(), 0u);
  gone.reset();
  for (const auto& client : clients_) pipeline_.forget(*client);
  clients_.clear();
  pipeline_.flush(clock_.now());
  EXPECT_EQ(store_.charged(), before + 1) << "the refund";
  run(100ms);
}

}  // namespace
}  // namespace weir::overload_test
