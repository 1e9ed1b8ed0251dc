// Questions that share one command, on a real Redis: each answers or fails alone.
#include "weir/store/redis/batches.h"

#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/store/redis/redis_cluster_test.h"

namespace weir::redis::batches_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kThree = Limit::per_hour(3);

Charge of(std::string_view key, Count cost = 1) {
  Charge charge;
  charge.limit_name = key;
  charge.rate = RateCharge{key, kThree};
  charge.cost = cost;
  return charge;
}

// Asks one question per list of charges, all in one turn.
std::vector<Result<Verdict>> ask_all(StoreOnRedis& store, const std::vector<std::vector<Charge>>& questions,
                                     Mode mode = Mode::spend) {
  std::vector<Question> batch;
  for (const std::vector<Charge>& charges : questions) batch.push_back({0, charges, mode});
  return store.ask(batch);
}

std::string print(const std::vector<Result<Verdict>>& answers) {
  std::string out;
  for (const Result<Verdict>& answer : answers) {
    out += out.empty() ? "" : " ";
    out += !answer ? "failed" : answer->allowed ? std::to_string(answer->all[0].strictest().remaining) : "denied";
  }
  return out;
}

class BatchesTest : public testing::Test {
 protected:
  void serve(RedisStore::Options options = patient(1)) {
    store_.emplace(server_.port(), std::move(options));
    store_->wait_until(true);
    server_.ask({"CONFIG", "RESETSTAT"});
  }
  // How often Redis ran the command.
  int calls(const std::string& command) {
    const std::string stats = server_.ask({"INFO", "commandstats"});
    const std::string field = "cmdstat_" + command + ":calls=";
    const std::size_t at = stats.find(field);
    return at == std::string::npos ? 0 : std::stoi(stats.substr(at + field.size()));
  }

  RedisServer server_;
  std::optional<StoreOnRedis> store_;
};

TEST_F(BatchesTest, EightQuestionsShareOneCommandAndItsClockAndNineAreTwo) {
  serve();
  std::vector<std::vector<Charge>> questions(bounds::redis_batch_questions_max, {of("a", 0)});
  EXPECT_EQ(print(ask_all(*store_, questions)), "3 3 3 3 3 3 3 3");
  EXPECT_EQ(calls("evalsha"), 1);
  EXPECT_EQ(calls("time"), 1);
  questions.push_back({of("a", 0)});
  EXPECT_EQ(ask_all(*store_, questions).size(), 9u);
  EXPECT_EQ(calls("evalsha"), 3);
}

TEST_F(BatchesTest, SixteenBucketsShareOneCommandAndSeventeenAreTwo) {
  serve();
  static_assert(bounds::redis_batch_buckets_max == 16);
  const std::vector<Charge> eight = {of("a"), of("b"), of("c"), of("d"), of("e"), of("f"), of("g"), of("h")};
  EXPECT_EQ(print(ask_all(*store_, {eight, eight})), "2 1");
  EXPECT_EQ(calls("evalsha"), 1);
  EXPECT_EQ(print(ask_all(*store_, {eight, {of("i")}, eight})), "0 2 denied");
  EXPECT_EQ(calls("evalsha"), 3);
}

TEST_F(BatchesTest, TheSameBucketTwiceInABatchIsChargedInOrderAndNeverBeyondItsLimit) {
  serve();
  std::vector<std::vector<Charge>> questions(6, {of("a")});
  questions.insert(questions.begin() + 1, {of("a"), of("b")});
  EXPECT_EQ(print(ask_all(*store_, questions)), "2 1 0 denied denied denied denied");
  EXPECT_EQ(calls("evalsha"), 1);
}

TEST_F(BatchesTest, QuestionsOfAllKindsShareACommand) {
  serve();
  Charge quota = of("q");
  quota.rate.reset();
  const Wall start = std::chrono::floor<std::chrono::hours>(BootClock::wall());
  quota.quota = QuotaCharge{"q", {5, {start, start + 1h}, start + 2h}};
  const std::vector<Charge> a = {of("a")};
  const std::vector<Charge> q = {quota};
  const std::vector<Charge> both = {of("a"), quota};
  const std::vector<Question> batch = {{0, a},
                                       {0, q},
                                       {0, both, Mode::spend, Order::in_order},
                                       {0, a, Mode::peek},
                                       {0, a, Mode::refund},
                                       {0, both, Mode::reset},
                                       {0, both}};
  EXPECT_EQ(print(store_->ask(batch)), "2 4 1 1 2 3 2");
  EXPECT_EQ(calls("evalsha"), 1);
}

TEST_F(BatchesTest, AKeyOfTheWrongTypeInABatchCountsAsNoBucket) {
  serve();
  server_.ask({"LPUSH", "weir:b:b", "x"});
  EXPECT_EQ(print(ask_all(*store_, {{of("a")}, {of("b")}, {of("c")}, {of("b")}})), "2 2 2 1");
}

TEST_F(BatchesTest, WithoutMemoryOnlyTheQuestionsOfABatchThatWriteFail) {
  serve();
  ASSERT_EQ(print(ask_all(*store_, {{of("full", 3)}})), "0");
  server_.ask({"CONFIG", "SET", "maxmemory", "1"});
  const auto answers = ask_all(*store_, {{of("a")}, {of("full")}, {of("b", 0)}, {of("c"), of("d")}});
  EXPECT_EQ(print(answers), "failed denied 3 failed");
  EXPECT_NE(answers[0].error().detail.find("no_memory"), std::string::npos) << answers[0].error().detail;
  EXPECT_NE(answers[3].error().detail.find("no_memory"), std::string::npos) << answers[3].error().detail;
}

TEST_F(BatchesTest, AForbiddenKeyFailsItsOwnQuestionAndTheRestOfTheBatchIsAskedAgain) {
  server_.ask({"ACL", "SETUSER", "app", "on", ">secret", "~weir:b:a*", "+@all"});
  RedisStore::Options options = patient(1);
  options.link.client.username = "app";
  options.link.client.password = "secret";
  serve(options);
  const auto answers = ask_all(*store_, {{of("a1")}, {of("forbidden")}, {of("a2")}});
  EXPECT_EQ(print(answers), "2 failed 2");
  EXPECT_NE(answers[1].error().detail.find("not_allowed"), std::string::npos) << answers[1].error().detail;
}

TEST_F(BatchesTest, AForgottenScriptIsLoadedAndTheBatchAskedAgainUnseen) {
  serve();
  ASSERT_EQ(server_.ask({"SCRIPT", "FLUSH"}), "OK");
  EXPECT_EQ(print(ask_all(*store_, {{of("a")}, {of("a")}, {of("b")}})), "2 1 2");
}

TEST_F(BatchesTest, AnyOtherErrorOfTheCommandFailsAllItsQuestions) {
  serve();
  server_.ask({"CONFIG", "SET", "busy-reply-threshold", "1"});
  RedisConnection script(server_.port());
  script.write("*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n");
  until([&] { return server_.ask({"GET", "x"}).find("BUSY") != std::string::npos; });
  const auto answers = ask_all(*store_, {{of("a")}, {of("b")}});
  EXPECT_EQ(print(answers), "failed failed");
  EXPECT_NE(answers[1].error().detail.find("busy"), std::string::npos) << answers[1].error().detail;
  server_.ask({"SCRIPT", "KILL"});
  until([&] { return server_.ask({"GET", "x"}).find("BUSY") == std::string::npos; });  // it ends a moment later
  EXPECT_EQ(server_.ask({"EXISTS", "weir:b:a", "weir:b:b"}), "0");
}

TEST_F(BatchesTest, ABatchThatIsLostWithItsConnectionFailsAndIsNotRepeated) {
  serve();
  server_.pause();
  const std::vector<Charge> charges = {of("a")};
  std::vector<Question> batch(3, Question{0, charges});
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i].ticket = i;
  Collected collected(batch.size());
  store_->thread().run([&] { store_->store().charge(batch, store_->thread().loop().now(), collected); });
  server_.kill();
  for (const auto& answer : collected.wait()) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().fault, Fault::timeout);
  }
  server_.start();
  store_->wait_until(true);
  EXPECT_EQ(server_.ask({"EXISTS", "weir:b:a", "weir:b:b"}), "0");
}

// Records the answers in the order they arrive.
struct Sequence final : Answers {
  std::mutex mutex;
  std::vector<std::pair<Ticket, bool>> seen;
  void answer(Ticket ticket, const Result<Verdict>& verdict) override {
    const std::lock_guard lock(mutex);
    seen.emplace_back(ticket, verdict.has_value());
  }
  std::size_t size() {
    const std::lock_guard lock(mutex);
    return seen.size();
  }
};

TEST_F(BatchesTest, AQuestionOfABatchThatIsLateFailsWhileTheOthersWait) {
  serve();
  server_.pause();
  const std::vector<Charge> charges = {of("a")};
  const std::vector<Question> early = {{1, charges}};
  const std::vector<Question> other = {{2, charges}};
  Sequence answers;
  store_->thread().run([&] {
    const Now now = store_->thread().loop().now();
    store_->store().together([&] {
      store_->store().charge(other, now, answers);
      store_->store().charge(early, {now.time - patient().link.timeout + 50ms, now.wall}, answers);
    });
  });
  until([&] { return answers.size() == 1; });
  server_.resume();
  until([&] { return answers.size() == 2; });
  EXPECT_EQ(answers.seen, (std::vector<std::pair<Ticket, bool>>{{1, false}, {2, true}}));
}

TEST_F(BatchesTest, WhatWasAskedBeforeACommandOfAnotherKindIsSentBeforeIt) {
  serve();
  const std::vector<Charge> charges = {of("a")};
  const std::vector<Question> batch = {{0, charges}};
  Collected collected(1);
  std::string kept;
  store_->thread().run([&] {
    store_->store().together([&] {
      store_->store().charge(batch, store_->thread().loop().now(), collected);
      const std::array<std::string_view, 2> get = {"EXISTS", "weir:b:a"};
      store_->store().ask("weir:b:a", get, [&](const Result<const resp::Reply*>& reply) {
        kept = reply ? std::to_string((*reply)->root().integer) : "lost";
      });
    });
  });
  collected.wait();
  until([&] {
    bool heard = false;
    store_->thread().run([&] { heard = !kept.empty(); });
    return heard;
  });
  EXPECT_EQ(kept, "1");
}

TEST_F(Cluster, ABatchInASlotThatMovesIsAskedAgainOneByOne) {
  const auto store = serve();
  const std::string tag = "{" + key_in(0) + "}";
  const std::array<std::string, 3> keys = {tag + "a", tag + "b", tag + "c"};
  const std::vector<std::vector<Charge>> questions = {{of(keys[0])}, {of(keys[1])}, {of(keys[2])}};
  const std::string name = "weir:b:" + keys[0];
  const std::string slot = std::to_string(slot_of(name));
  ASSERT_EQ(print(ask_all(*store, questions)), "2 2 2");
  nodes_[1]->ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(0)});
  nodes_[0]->ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(1)});
  const std::string port = std::to_string(nodes_[1]->port());
  ASSERT_EQ(nodes_[0]->ask({"MIGRATE", "127.0.0.1", port, name, "0", "5000"}), "OK");
  EXPECT_EQ(print(ask_all(*store, questions)), "1 1 1") << "TRYAGAIN, then ASK for the one that has gone ahead";
  for (const std::string& key : {keys[1], keys[2]}) {
    ASSERT_EQ(nodes_[0]->ask({"MIGRATE", "127.0.0.1", port, "weir:b:" + key, "0", "5000"}), "OK");
  }
  EXPECT_EQ(print(ask_all(*store, questions)), "0 0 0") << "ASK for all of them";
  for (const std::size_t node : {1u, 0u, 2u}) nodes_[node]->ask({"CLUSTER", "SETSLOT", slot, "NODE", id_of(1)});
  EXPECT_EQ(print(ask_all(*store, questions)), "denied denied denied") << "MOVED";
}

TEST_F(Cluster, OnlyQuestionsOfOneSlotShareACommand) {
  const auto store = serve();
  for (const auto& node : nodes_) node->ask({"CONFIG", "RESETSTAT"});
  const std::string tag = "{" + key_in(0) + "}";
  const std::string one = tag + "a", two = tag + "b", other = key_in(0, 1);
  ASSERT_NE(slot_of("weir:b:" + one), slot_of("weir:b:" + other));
  EXPECT_EQ(print(ask_all(*store, {{of(one)}, {of(two)}, {of(other)}})), "2 2 2");
  EXPECT_NE(nodes_[0]->ask({"INFO", "commandstats"}).find("cmdstat_evalsha:calls=2,"), std::string::npos);
}

}  // namespace
}  // namespace weir::redis::batches_test
