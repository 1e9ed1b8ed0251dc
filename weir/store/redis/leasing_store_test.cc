#include "weir/store/redis/leasing_store.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "weir/store/redis/lease_model_test.h"
#include "weir/store/redis/redis_subject_test.h"

namespace weir::redis::leasing_store_test {
namespace {

using namespace std::chrono_literals;

RedisServer& shared_server() {
  static RedisServer server;
  return server;
}

// Two loops of one server with leases, in real time.
class Leasing : public testing::Test {
 protected:
  struct Place {
    std::unique_ptr<LeasingStore> store;
    LoopThread thread;
    ~Place() {
      thread.run([&] { store.reset(); });
    }
  };

  Leasing() {
    for (auto& place : places_) open(place);
  }
  void open(std::unique_ptr<Place>& place) {
    place = std::make_unique<Place>();
    place->thread.run([&] {
      auto store =
          std::make_unique<RedisStore>(place->thread.loop(), patient(), health_, [this](Loop&, const MakeNode& make) {
            return std::make_unique<SingleTopology>(make, Target{"127.0.0.1", server_.port(), {}});
          });
      place->store = std::make_unique<LeasingStore>(place->thread.loop(), std::move(store), leases_);
    });
    while (!place->thread.run([&] { return place->store->store().is_up(); })) std::this_thread::sleep_for(1ms);
  }
  // Sends `times` requests at once.
  std::vector<Result<Verdict>> ask(const Charge& charge, std::size_t times, std::size_t place = 0,
                                   Mode mode = Mode::spend) {
    std::vector<Question> questions;
    for (std::size_t i = 0; i < times; ++i) questions.push_back({i, {&charge, 1}, mode, Order::together});
    Collected collected(times);
    Place& at = *places_[place];
    at.thread.run([&] { at.store->charge(questions, at.thread.loop().now(), collected); });
    return collected.wait();
  }
  static Count passed(const std::vector<Result<Verdict>>& answers) {
    return std::ranges::count_if(answers, [](const auto& answer) { return answer && answer->allowed; });
  }
  std::int64_t commands() {
    const std::string text = server_.ask({"INFO", "commandstats"});
    const std::size_t at = text.find("cmdstat_evalsha:calls=");
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + 22));
  }

  RedisServer server_;
  Health health_{[](LogLevel, std::string_view) {}};
  Leases leases_{{.holder = "a1", .key = {1, 2}}};
  std::array<std::unique_ptr<Place>, 2> places_;
};

// Refills one token per hour.
Charge slow(Count burst, Lease lease, Count cost = 1) {
  Charge charge;
  charge.limit_name = "slow";
  charge.rate = RateCharge{.key = "slow:1", .limit = *Limit::make(1, 1h, burst), .lease = lease};
  charge.cost = cost;
  return charge;
}

TEST_F(Leasing, AHotBucketCostsRedisFewCommands) {
  const Charge charge = slow(2000, {64, 4});
  Count allowed = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    for (std::size_t place = 0; place < 2; ++place) allowed += passed(ask(charge, 5, place));
  }
  EXPECT_EQ(allowed, 1000);
  // A lease and a return for every 64 tokens, and again for every 100 ms that a busy machine takes for this.
  const auto lives = (std::chrono::steady_clock::now() - begin) / kLeaseLife;
  EXPECT_LE(commands(), 60 + 4 * lives);
  EXPECT_GT(health_.leased(), 0u);
}

TEST_F(Leasing, TheSharedBucketIsSmallerByAllLeasesAndNoMore) {
  const Charge charge = slow(100, {8, 4});
  Count allowed = 0;
  for (int i = 0; i < 20; ++i) allowed += passed(ask(charge, 10, static_cast<std::size_t>(i) % 2));
  EXPECT_EQ(allowed, 68);
}

TEST_F(Leasing, EveryoneOfAGatheringGetsTheAnswerOfItsTurn) {
  Charge charge = slow(100, {8, 4}, 2);
  std::vector<Result<Verdict>> rest;
  Duration took = kLeaseLife;
  // Another bucket each time, until a busy machine was quick enough for the bucket to stay hot.
  for (std::string key = "slow:"; took >= kLeaseLife; key += "x") {
    charge.rate->key = key;
    const Time begin = BootClock().time();
    ASSERT_EQ(passed(ask(charge, 9)), 9);
    rest = ask(charge, 30);  // 50 tokens are left: enough for 25 of these
    took = BootClock().time() - begin;
  }
  ASSERT_EQ(passed(rest), 25);
  for (std::size_t i = 0; i < 25; ++i) {
    EXPECT_EQ(rest[i]->all[0].strictest().remaining, 48 - 2 * static_cast<Count>(i));
    EXPECT_EQ(rest[i]->all[0].strictest().burst, 68);
  }
  EXPECT_EQ(rest[29]->all[0].strictest().remaining, 0);
  EXPECT_GT(rest[29]->all[0].strictest().retry_after, 1h);
  EXPECT_LE(rest[29]->all[0].strictest().retry_after, 2h);
}

TEST_F(Leasing, WhatIsLeftOfALeaseIsReturned) {
  const Charge charge = slow(2000, {64, 4});
  Count spent = 0;
  while (health_.leased() == 0) spent += passed(ask(charge, 20));  // the last of them ask for a lease
  Count remaining = 0;
  while (remaining != 2000 - 256 - spent) {
    remaining = ask(charge, 1, 0, Mode::peek)[0]->all[0].strictest().remaining;
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(server_.ask({"EXISTS", "weir:l:slow:1"}), "0");
}

TEST_F(Leasing, LeasesAreReturnedWhenTheStoreEnds) {
  const Charge charge = slow(2000, {64, 4});
  Count spent = 0;
  do {
    spent += passed(ask(charge, 20));
  } while (server_.ask({"EXISTS", "weir:l:slow:1"}) == "0");
  places_[0].reset();
  while (server_.ask({"EXISTS", "weir:l:slow:1"}) == "1") std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ask(charge, 1, 1, Mode::peek)[0]->all[0].strictest().remaining, 2000 - 256 - spent);
}

TEST_F(Leasing, AServerBeyondTheNumberDoesNotLease) {
  const Charge charge = slow(1000, {64, 2});
  const std::string others = "b2 1 9999999999999;c3 1 9999999999999;";
  server_.ask({"SET", "weir:l:slow:1", others});
  EXPECT_EQ(passed(ask(charge, 100)), 100);
  EXPECT_EQ(passed(ask(charge, 100)), 100);
  EXPECT_EQ(health_.leased(), 0u);
  EXPECT_EQ(server_.ask({"GET", "weir:l:slow:1"}), others);
}

TEST_F(Leasing, ShadowsQuotasAndSeveralLimitsAskRedis) {
  Charge shadow = slow(1000, {64, 4});
  shadow.shadow = true;
  ask(shadow, 100);
  const std::vector<Charge> two = {slow(1000, {64, 4}), slow(1000, {64, 4})};
  std::vector<Question> questions(50, {0, two, Mode::spend, Order::together});
  for (std::size_t i = 0; i < questions.size(); ++i) questions[i].ticket = i;
  Collected collected(questions.size());
  Place& at = *places_[0];
  at.thread.run([&] { at.store->charge(questions, at.thread.loop().now(), collected); });
  for (const auto& answer : collected.wait()) EXPECT_EQ(answer->all[0].strictest().burst, 1000 - 256);
  EXPECT_EQ(health_.leased(), 0u);
  EXPECT_EQ(commands(), 20) << "eight questions per command: 100 are 13 and 50 are 7";
}

TEST_F(Leasing, NumbersThatLeaveNoRoomForLeasesAreCountedWithout) {
  const Charge charge = slow(256, {64, 4});
  EXPECT_EQ(passed(ask(charge, 300)), 256);
  EXPECT_EQ(health_.leased(), 0u);
}

TEST_F(Leasing, ALeaseEndsWithItsTimeWhenRedisIsAway) {
  const Charge charge = slow(1000, {64, 4});
  ask(charge, 20);
  server_.kill();
  for (;;) {
    const auto answer = ask(charge, 1)[0];
    if (!answer) break;  // an Error; the failure policy would handle it
    EXPECT_TRUE(answer->allowed);
    std::this_thread::sleep_for(1ms);
  }
}

// Compares the script with the model that lease_model_test.cc uses.
TEST(LeaseScript, AnswersAsTheModel) {
  RedisConnection redis(shared_server().port());
  redis.ask({"FLUSHALL"});
  const std::string sha = redis.ask({"SCRIPT", "LOAD", timed_script()});
  const Leases::Terms terms{*Limit::make(7, 10ms, 50), Lease{10, 2}};
  LeaseModel model(terms);
  std::mt19937_64 random(5);
  Time now{1'000'000s};
  std::vector<std::uint64_t> serials(4, 0);
  for (int i = 0; i < 3000; ++i) {
    now += std::chrono::microseconds{random() % 8 == 0 ? random() % 200'000 : random() % 2000};
    const auto at = now.time_since_epoch() / 1us;
    const std::size_t who = random() % 4;
    const std::string holder = "h" + std::to_string(who);
    const auto count = [&](std::uint64_t below) { return static_cast<Count>(random() % below); };
    std::vector<std::string> command = {"EVALSHA", sha, "2", "k", "l"};
    const auto push = [&](const auto&... words) { (command.emplace_back(words), ...); };
    const auto number = [](auto value) { return std::to_string(value); };
    const Count cost = 1 + count(3), asks = 1 + count(4), want = count(11);
    const bool back = random() % 3 == 0;
    const std::uint64_t serial = back && random() % 8 != 0 ? serials[who] : ++serials[who];
    push(back ? "return" : "lease", "b", number(terms.limit.price(cost).count()), number(terms.limit.window().count()),
         number(terms.limit.interval().count()));
    if (!back) push(number(asks), number(want));
    push(holder, number(serial));
    if (!back) push(number(terms.lease.servers), number(kLeasePlace / 1ms));
    push(number(at / 1'000'000), number(at % 1'000'000));
    const std::string answer = redis.ask(command);
    std::vector<Count> expected = {at / 1'000'000, at % 1'000'000};
    if (back) {
      model.give_back(cost, holder, serial, now);
      const Decision left = gcra::peek(terms.limit, model.tat(), 0, now);
      expected.insert(expected.end(), {0, 0, left.remaining, 0, left.reset_after.count(), 0});
    } else {
      const auto granted = model.lease(cost, asks, want, holder, serial, now);
      const Duration room = terms.limit.window() - granted.left.reset_after;
      const Duration retry = std::max(terms.limit.price(cost) - room, Duration::zero());
      expected.insert(expected.end(), {granted.full ? 1 : 0, granted.fit, granted.left.remaining, retry.count(),
                                       granted.left.reset_after.count(), granted.leased});
    }
    std::string text;
    for (const Count value : expected) text += (text.empty() ? "[" : ", ") + std::to_string(value);
    ASSERT_EQ(answer, text + "]") << i;
  }
}

}  // namespace
}  // namespace weir::redis::leasing_store_test
