#include "weir/store/redis/redis_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weir/store/redis/redis_subject_test.h"
#include "weir/store/testing/store_conformance.h"

namespace weir::redis::redis_store_test {
namespace {

using namespace std::chrono_literals;

RedisServer& shared_server() {
  static RedisServer server;
  return server;
}

INSTANTIATE_TEST_SUITE_P(Redis, StoreConformance,
                         testing::Values([] { return std::make_unique<RedisSubject>(shared_server()); }));

constexpr Limit kTwo = Limit::per_hour(2);

Charge of(std::string_view key, const Limit& limit, Count cost = 1) {
  Charge charge;
  charge.limit_name = key;
  charge.rate = RateCharge{key, limit};
  charge.cost = cost;
  return charge;
}

RedisStore::Options impatient() {
  RedisStore::Options options;
  options.link.timeout = 200ms;
  return options;
}

// Up and down alternate, however many requests and links there were. A busy machine may look like one more outage, and
// an outage may have several causes.
void expect_each_change_told_once(std::vector<std::string> log) {
  std::erase_if(log, [](const std::string& line) { return line.starts_with("Redis still unavailable: "); });
  EXPECT_GE(log.size(), 3u) << "connected, down, back";
  EXPECT_EQ(log.size() % 2, 1u) << "up in the end";
  for (std::size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i].starts_with("Redis unavailable"), i % 2 == 1) << log[i];
  }
}

Result<Verdict> ask(StoreOnRedis& store, const Charge& charge, Mode mode = Mode::spend) {
  const std::vector<Charge> charges = {charge};
  const std::vector<Question> batch = {{0, charges, mode, Order::together}};
  return store.ask(batch).at(0);
}

class RedisStoreTest : public testing::Test {
 protected:
  RedisServer server_;
};

TEST_F(RedisStoreTest, WritesKeysAsDocumented) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  ASSERT_TRUE(ask(store, of("6:12345678", kTwo)));
  ASSERT_TRUE(ask(store, of("*:mine", kTwo)));
  Charge hour = of("6:12345678", kTwo);
  hour.rate.reset();
  const Wall start = std::chrono::floor<std::chrono::hours>(BootClock::wall());
  hour.quota = QuotaCharge{"6:12345678", {5, {start, start + 1h}, start + 2h}};
  ASSERT_TRUE(ask(store, hour));
  EXPECT_EQ(server_.ask({"EXISTS", "weir:b:6:12345678", "weir:a:mine", "weir:w:6:12345678"}), "3");
  EXPECT_EQ(server_.ask({"GET", "weir:b:6:12345678"}).size(), 19u) << "seconds and nine digits";
}

TEST_F(RedisStoreTest, PutsAHashTagBehindThePrefix) {
  RedisStore::Options options = patient();
  options.key_prefix = "p:";
  options.hash_tag = "one";
  StoreOnRedis store(server_.port(), options);
  store.wait_until(true);
  ASSERT_TRUE(ask(store, of("a:x", kTwo)));
  EXPECT_EQ(server_.ask({"KEYS", "*"}), "[p:{one}b:a:x]");
}

TEST_F(RedisStoreTest, ABucketIsForgottenWhenItIsFullAndNotBefore) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  RedisConnection redis(server_.port());
  ASSERT_TRUE(ask(store, of("a", Limit::per_second(5).with_burst(1))));
  const std::string tat = redis.ask({"GET", "weir:b:a"});
  ASSERT_EQ(tat.size(), 19u);
  while (redis.ask({"EXISTS", "weir:b:a"}) == "1") std::this_thread::sleep_for(500us);
  // "[1700000000, 123456]"
  const std::string time = redis.ask({"TIME"});
  const std::size_t comma = time.find(',');
  std::string micros = time.substr(comma + 2, time.size() - comma - 3);
  micros.insert(0, 6 - micros.size(), '0');
  EXPECT_GE(time.substr(1, comma - 1) + micros + "000", tat);
}

TEST_F(RedisStoreTest, AFewQuestionsShareOneCommandAndADenialWritesNothing) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  RedisConnection monitor(server_.port());
  ASSERT_EQ(monitor.ask({"MONITOR"}), "OK");
  const std::vector<Charge> charges = {of("a", kTwo), of("b", kTwo)};
  const std::vector<Question> batch(5, Question{0, charges});
  for (const auto& answer : store.ask(batch)) ASSERT_TRUE(answer);
  server_.ask({"PING"});
  int commands = 0;
  int writes = 0;
  for (;;) {
    const std::string line(monitor.read().root().text);
    if (line.find("\"PING\"") != std::string::npos) break;
    if (line.find(" lua]") == std::string::npos) ++commands;
    if (line.find("\"SET\"") != std::string::npos) ++writes;
  }
  EXPECT_EQ(commands, 1);
  EXPECT_EQ(writes, 4) << "two questions passed, each with two buckets";
}

// Redis starts on the first questions of a turn while the others are read; the busier it is, the more are sent at once.
TEST_F(RedisStoreTest, WantsFewQuestionsSoonAndMoreWhenItIsBusy) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  const std::vector<Charge> charges = {of("a", kTwo)};
  std::vector<Question> batch(300, Question{0, charges});
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i].ticket = i;
  Collected collected(batch.size());
  store.thread().run([&] {
    RedisStore& asked = store.store();
    const auto charge = [&](std::size_t from, std::size_t to) {
      asked.charge({batch.data() + from, to - from}, store.thread().loop().now(), collected);
    };
    EXPECT_EQ(asked.batch_max(), 8u);
    charge(0, 8);
    EXPECT_EQ(asked.batch_max(), 8u);
    charge(8, 9);
    EXPECT_EQ(asked.batch_max(), 9u);
    charge(9, batch.size());
    EXPECT_EQ(asked.batch_max(), bounds::queries_per_turn_max);
  });
  collected.wait();
  store.thread().run([&] { EXPECT_EQ(store.store().batch_max(), 8u); });
}

RedisStore::Options remembering() {
  RedisStore::Options options = patient();
  options.denials = std::make_shared<DenialCache>(HashKey{1, 2});
  return options;
}

TEST_F(RedisStoreTest, LoopsOfOneServerRememberDenialsTogether) {
  const RedisStore::Options options = remembering();
  StoreOnRedis one(server_.port(), options);
  StoreOnRedis two(server_.port(), options);
  one.wait_until(true);
  two.wait_until(true);
  ASSERT_TRUE(ask(one, of("a", kTwo, 2)));
  ASSERT_FALSE(ask(one, of("a", kTwo))->allowed);
  ASSERT_FALSE(ask(two, of("a", kTwo))->allowed);
  EXPECT_EQ(two.health().denial_hits(), 1u);
  // A reset through either loop ends the denial for both.
  Charge charge = of("a", kTwo);
  ASSERT_TRUE(two.ask(std::vector{Question{0, {&charge, 1}, Mode::reset}})[0]);
  EXPECT_TRUE(ask(one, charge)->allowed);
}

TEST_F(RedisStoreTest, AfterASecondOneQuestionIsAskedForAFlood) {
  StoreOnRedis store(server_.port(), remembering());
  store.wait_until(true);
  const std::vector<Charge> charges = {of("a", kTwo)};
  ASSERT_TRUE(ask(store, of("a", kTwo, 2)));
  Now now{BootClock().time(), BootClock::wall()};
  ASSERT_FALSE(store.ask(std::vector{Question{0, charges}}, now)[0]->allowed);
  RedisConnection redis(server_.port());
  ASSERT_EQ(redis.ask({"CONFIG", "RESETSTAT"}), "OK");
  now.time += kDenialLifeMax;
  for (const auto& answer : store.ask(std::vector<Question>(500, Question{0, charges}), now)) {
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->allowed);
  }
  EXPECT_NE(redis.ask({"INFO", "commandstats"}).find("cmdstat_evalsha:calls=1,"), std::string::npos);
}

TEST_F(RedisStoreTest, RemembersADenialInsteadOfAskingAgain) {
  StoreOnRedis store(server_.port(), remembering());
  store.wait_until(true);
  ASSERT_TRUE(ask(store, of("a", kTwo, 2)));
  const auto first = ask(store, of("a", kTwo));
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->allowed);
  std::uint64_t answered = 0;
  for (; answered < 100; ++answered) {
    const auto again = ask(store, of("a", kTwo));
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->allowed);
    EXPECT_LE(again->all[0].strictest().retry_after, first->all[0].strictest().retry_after);
  }
  EXPECT_GT(store.health().denial_hits(), 0u);
  // Another cost is another question; a refund voids the cached denial.
  EXPECT_TRUE(ask(store, of("a", kTwo, 0))->allowed);
  ASSERT_TRUE(ask(store, of("a", kTwo), Mode::refund));
  EXPECT_TRUE(ask(store, of("a", kTwo))->allowed);
  EXPECT_FALSE(ask(store, of("a", kTwo))->allowed);
  ASSERT_TRUE(ask(store, of("a", kTwo), Mode::reset));
  EXPECT_TRUE(ask(store, of("a", kTwo))->allowed);
}

TEST_F(RedisStoreTest, ARememberedDenialWaitsForWhatWasChargedSince) {
  StoreOnRedis store(server_.port(), remembering());
  store.wait_until(true);
  ASSERT_TRUE(ask(store, of("a", kTwo))->allowed);
  const auto first = ask(store, of("a", kTwo, 2));
  ASSERT_FALSE(first->allowed);
  ASSERT_TRUE(ask(store, of("a", kTwo))->allowed);
  const auto second = ask(store, of("a", kTwo, 2));
  ASSERT_FALSE(second->allowed);
  EXPECT_EQ(second->all[0].strictest().remaining, 0);
  EXPECT_GT(second->all[0].strictest().retry_after, first->all[0].strictest().retry_after);
}

TEST_F(RedisStoreTest, ARefundOrResetOnOneLoopEndsTheDenialsThatAnotherRemembers) {
  const RedisStore::Options options = remembering();
  StoreOnRedis one(server_.port(), options);
  StoreOnRedis two(server_.port(), options);
  one.wait_until(true);
  two.wait_until(true);
  ASSERT_TRUE(ask(one, of("a", kTwo, 2))->allowed);
  for (const Mode mode : {Mode::refund, Mode::reset}) {
    EXPECT_FALSE(ask(two, of("a", kTwo, 2))->allowed);
    ASSERT_TRUE(ask(one, of("a", kTwo, 2), mode));
    EXPECT_TRUE(ask(two, of("a", kTwo, 2))->allowed);
  }
  EXPECT_FALSE(ask(two, of("a", kTwo, 2))->allowed);
  server_.ask({"DEL", "weir:b:a"});
  options.denials->forget_all();
  EXPECT_TRUE(ask(two, of("a", kTwo, 2))->allowed);
}

TEST_F(RedisStoreTest, LoadsItsScriptAgainUnseenWhenRedisForgotIt) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  ASSERT_EQ(server_.ask({"SCRIPT", "FLUSH"}), "OK");
  const auto answer = ask(store, of("a", kTwo));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->all[0].strictest().remaining, 1);
}

TEST_F(RedisStoreTest, AnswersInTimeWhileRedisIsPausedAndGoesOnWhenItIsBack) {
  StoreOnRedis store(server_.port(), impatient());
  store.wait_until(true);
  server_.pause();
  EXPECT_EQ(ask(store, of("a", kTwo)).error().fault, Fault::timeout);
  EXPECT_EQ(ask(store, of("a", kTwo)).error().fault, Fault::unavailable) << "the second does not wait";
  EXPECT_FALSE(store.health().is_up());
  server_.resume();
  store.wait_until(true);
  while (!ask(store, of("b", kTwo))) std::this_thread::sleep_for(1ms);
  expect_each_change_told_once(store.log());
}

TEST_F(RedisStoreTest, GoesOnAfterRedisWasKilledAndStartedEmpty) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  ASSERT_TRUE(ask(store, of("a", kTwo, 2))->allowed);
  server_.kill();
  store.wait_until(false);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(ask(store, of("a", kTwo)));
  server_.start();
  store.wait_until(true);
  EXPECT_TRUE(ask(store, of("a", kTwo))->allowed) << "one burst more is what an empty Redis costs";
  expect_each_change_told_once(store.log());
}

TEST_F(RedisStoreTest, StartsWithoutRedisAndFindsItLater) {
  server_.kill();
  StoreOnRedis store(server_.port());
  EXPECT_EQ(ask(store, of("a", kTwo)).error().fault, Fault::unavailable);
  server_.start();
  store.wait_until(true);
  EXPECT_TRUE(ask(store, of("a", kTwo)));
}

TEST(RedisStoreSetup, LogsInAsAnAclUserIntoADatabase) {
  RedisServer server({"--user", "app", "on", ">secret", "~weir:*", "+@all", "--user", "default", "off"});
  RedisStore::Options options = patient();
  options.link.client.username = "app";
  options.link.client.password = "secret";
  options.link.client.db = 3;
  StoreOnRedis store(server.port(), options);
  store.wait_until(true);
  ASSERT_TRUE(ask(store, of("a", kTwo)));
  RedisConnection redis(server.port());
  ASSERT_EQ(redis.ask({"AUTH", "app", "secret"}), "OK");
  ASSERT_EQ(redis.ask({"SELECT", "3"}), "OK");
  EXPECT_EQ(redis.ask({"EXISTS", "weir:b:a"}), "1");
  EXPECT_NE(redis.ask({"CLIENT", "LIST"}).find("name=weir"), std::string::npos);
}

TEST(RedisStoreSetup, SaysWhyItCannotLogIn) {
  RedisServer server({"--requirepass", "secret"});
  RedisStore::Options options = patient();
  options.link.client.password = "wrong";
  StoreOnRedis store(server.port(), options);
  while (store.log().empty()) std::this_thread::sleep_for(1ms);
  EXPECT_NE(store.log()[0].find("WRONGPASS"), std::string::npos) << store.log()[0];
}

TEST(RedisStoreSetup, SaysWhyItCannotLogInAnyMore) {
  RedisServer server;
  StoreOnRedis store(server.port());
  store.wait_until(true);
  RedisConnection redis(server.port());
  redis.ask({"CONFIG", "SET", "requirepass", "secret"});
  redis.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  const auto record = [&] {
    return std::ranges::any_of(store.log(), [](const std::string& line) { return line.find("NOAUTH") != line.npos; });
  };
  for (int tries = 0; tries < 20'000 && !record(); ++tries) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(record()) << store.log().back();
}

TEST(RedisStoreSetup, WarnsOfAPolicyThatForgetsBuckets) {
  RedisServer server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  StoreOnRedis store(server.port());
  store.wait_until(true);
  EXPECT_NE(store.log().at(0).find("maxmemory-policy allkeys-lru"), std::string::npos) << store.log()[0];
}

TEST(RedisStoreSetup, ARefusedWriteIsAnErrorWithItsReason) {
  RedisServer server({"--maxmemory", "1000", "--maxmemory-policy", "noeviction"});
  StoreOnRedis store(server.port());
  store.wait_until(true);
  const auto answer = ask(store, of("a", kTwo));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().fault, Fault::unavailable);
  EXPECT_NE(answer.error().detail.find("no_memory"), std::string::npos) << answer.error().detail;
  EXPECT_EQ(store.health().troubles(trouble_of(Refusal::no_memory)), 1u);
}

TEST(RedisStoreSetup, ARedisThatDecidesNothingForASecondIsDownUntilProbesSucceed) {
  RedisServer server({"--maxmemory", "1000", "--maxmemory-policy", "noeviction"});
  StoreOnRedis store(server.port());
  store.wait_until(true);
  const auto begin = std::chrono::steady_clock::now();
  while (store.health().is_up()) {
    EXPECT_FALSE(ask(store, of("a", kTwo)));
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 900ms);
  EXPECT_EQ(ask(store, of("a", kTwo)).error().detail, "Redis cannot be reached") << "only probes are sent";
  ASSERT_EQ(server.ask({"CONFIG", "SET", "maxmemory", "0"}), "OK");
  store.wait_until(true);
  EXPECT_TRUE(ask(store, of("a", kTwo)));
  const std::vector<std::string> log = store.log();
  ASSERT_EQ(log.size(), 4u) << "connected, an odd reply, down, up";
  EXPECT_TRUE(log[1].starts_with("Redis reply is not a decision: kind=no_memory reply=\"OOM ")) << log[1];
  EXPECT_NE(log[2].find("kind=no_memory"), std::string::npos) << log[2];
  EXPECT_TRUE(log[3].starts_with("Redis available again after ")) << log[3];
}

// A quota whose window is years away from Redis's clock: the script refuses it.
Charge far_off() {
  Charge charge = of("far-off", kTwo);
  charge.rate.reset();
  const Wall start = std::chrono::floor<std::chrono::hours>(BootClock::wall()) + std::chrono::days{1000};
  charge.quota = QuotaCharge{"far-off", {5, {start, start + 1h}, start + 2h}};
  return charge;
}

TEST_F(RedisStoreTest, AReplyThatIsNotADecisionIsCountedAndLoggedAndOneOddLimitDoesNotTakeRedisDown) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t asked = 0;
  for (; std::chrono::steady_clock::now() - begin < 2s; ++asked) {
    EXPECT_EQ(ask(store, far_off()).error().fault, Fault::unavailable);
    EXPECT_TRUE(store.health().is_up());
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(ask(store, of("a", kTwo)));
  EXPECT_EQ(store.health().troubles(trouble_of(Refusal::clock)), asked);
  const std::vector<std::string> log = store.log();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_TRUE(log[1].starts_with("Redis reply is not a decision: kind=clock reply=")) << log[1];
}

TEST_F(RedisStoreTest, UnlistedErrorsAndRepliesOfTheWrongTypeAreLoggedAndTakeRedisDownAfterASecond) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"return redis.error_reply('ODD is not listed')", "other"},
      {"return 'text'", "malformed"},
      {"return 7", "malformed"}};
  for (const auto& [text, kind] : cases) {
    RedisStore::Options options = patient();
    const std::string sha = server_.ask({"SCRIPT", "LOAD", text});
    options.script = {text, sha};
    StoreOnRedis store(server_.port(), options);
    store.wait_until(true);
    while (store.health().is_up()) {
      EXPECT_EQ(ask(store, of("a", kTwo)).error().fault, Fault::unavailable);
      std::this_thread::sleep_for(5ms);
    }
    const std::vector<std::string> log = store.log();
    ASSERT_EQ(log.size(), 3u) << "connected, an odd reply, down";
    EXPECT_TRUE(log[1].starts_with("Redis reply is not a decision: kind=" + kind)) << log[1];
    EXPECT_TRUE(log[2].starts_with("Redis unavailable: ")) << log[2];
    EXPECT_NE(log[2].find("kind=" + kind), std::string::npos) << log[2];
  }
}

TEST_F(RedisStoreTest, AConnectionThatIsLostAndReplacedIsNoOutage) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  std::this_thread::sleep_for(1100ms);  // a connection that has served for a second is replaced at once
  ASSERT_EQ(server_.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).empty(), false);
  while (!ask(store, of("a", kTwo))) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(store.log(), std::vector<std::string>{"Redis connected"});
}

TEST_F(RedisStoreTest, RefusesAWindowBeyondItsArithmeticWithASentence) {
  StoreOnRedis store(server_.port());
  store.wait_until(true);
  EXPECT_TRUE(ask(store, of("a", Limit::per(1, std::chrono::days{104}))));
  const auto refused = ask(store, of("b", Limit::per(1, std::chrono::days{104} + 1ns)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::invalid);
  EXPECT_TRUE(refused.error().detail.starts_with("limit \"b\": refilling from empty")) << refused.error().detail;
  Charge own = of("*:mine", Limit::per(1, std::chrono::days{105}));
  own.limit_name = "";
  EXPECT_TRUE(ask(store, own).error().detail.starts_with("refilling from empty")) << "a caller's own has no name";
}

TEST_F(RedisStoreTest, TwoServersOnOneRedisShareTheBucket) {
  StoreOnRedis one(server_.port());
  StoreOnRedis two(server_.port());
  one.wait_until(true);
  two.wait_until(true);
  EXPECT_TRUE(ask(one, of("a", kTwo))->allowed);
  EXPECT_TRUE(ask(two, of("a", kTwo))->allowed);
  EXPECT_FALSE(ask(one, of("a", kTwo))->allowed);
  EXPECT_FALSE(ask(two, of("a", kTwo))->allowed);
}

}  // namespace
}  // namespace weir::redis::redis_store_test
