#include "weir/external/redis_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/clock.h"
#include "weir/redis/shared_hash.h"
#include "weir/store/redis/redis_subject_test.h"

namespace weir::external::redis_answers_test {
namespace {

using namespace std::chrono_literals;

// One server's side, called from the test's thread.
class Side {
 public:
  explicit Side(const redis::RedisServer& server) : store_(server.port(), options()) {
    answers_ = std::make_unique<RedisAnswers>(
        store_.thread().loop(), store_.store(),
        RedisAnswers::Options{"weir:", bounds::redis_window_max, &clock_,
                              [this](LogLevel level, std::string_view line) {
                                note(std::string(print(level)) + " " + std::string(line));
                              }});
    answers_->on_forgotten([this](std::string_view limit, std::string_view key) {
      note("forgotten " + std::string(limit) + "/" + std::string(key));
    });
    (void)read("any", "key");  // the first read begins to watch what others forget
    wait_until_up(true);
  }
  ~Side() {
    answers_.reset();
    store_.thread().run([] {});  // what is posted is done
  }

  std::optional<KeptAnswer> read(std::string_view limit, std::string_view key, std::string_view service = "s") {
    std::promise<std::optional<KeptAnswer>> promise;
    answers_->read(limit, key, service,
                   [&](std::optional<KeptAnswer> answer) { promise.set_value(std::move(answer)); });
    return promise.get_future().get();
  }
  // Written when this returns: commands of one loop keep their order.
  void write(std::string_view limit, std::string_view key, const KeptAnswer& answer) {
    answers_->write(limit, key, answer);
    (void)read(limit, key);
  }
  bool forget(std::string_view limit, std::string_view key) {
    std::promise<bool> promise;
    answers_->forget(limit, key, [&](bool shared) { promise.set_value(shared); });
    return promise.get_future().get();
  }
  // Waits until it was logged or announced that often.
  void wait_for(const std::string& what, std::size_t times = 1) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(noted_.wait_for(lock, 30s, [&] { return times <= count(what, lock); })) << what;
  }
  std::size_t count(const std::string& what) {
    const std::unique_lock lock(mutex_);
    return count(what, lock);
  }
  void wait_until_up(bool up) {
    while (answers_->is_up() != up) std::this_thread::sleep_for(1ms);
  }
  Time now() const { return clock_.time(); }

 private:
  static redis::RedisStore::Options options() {
    redis::RedisStore::Options options;
    options.link.timeout = 10s;  // a slow machine is no failure
    options.pool_size = 1;
    options.script = redis::kSharedHashScript;
    options.decides = false;
    return options;
  }
  std::size_t count(const std::string& what, const std::unique_lock<std::mutex>&) const {
    return static_cast<std::size_t>(std::ranges::count(notes_, what));
  }
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(std::move(what));
    noted_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable noted_;
  std::vector<std::string> notes_;
  BootClock clock_{12h};  // not that of the loop
  redis::StoreOnRedis store_;
  std::unique_ptr<RedisAnswers> answers_;
};

KeptAnswer answer(Time now, Duration fresh = 60s, Duration stale = 300s) {
  KeptAnswer made;
  made.numbers = *Limit::make(7, 1s, 10);
  made.tenant_key = "acme";
  made.service = "s";
  made.answered = now;
  made.fresh_until = now + fresh;
  made.stale_until = made.fresh_until + stale;
  return made;
}

class RedisAnswersTest : public testing::Test {
 protected:
  std::int64_t pttl(const std::string& key) { return std::stoll(server_.ask({"PTTL", key})); }

  redis::RedisServer server_;
  Side one_{server_};
  Side two_{server_};
};

TEST_F(RedisAnswersTest, WhatOneServerWritesTheOtherReads) {
  EXPECT_FALSE(two_.read("limit", "key"));
  one_.write("limit", "key", answer(one_.now()));
  const auto read = two_.read("limit", "key");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->numbers->count(), 7);
  EXPECT_EQ(read->tenant_key, "acme");
  EXPECT_TRUE(read->shared);
  EXPECT_GT(read->fresh_until, two_.now());
  EXPECT_LE(read->fresh_until, two_.now() + 60s);
  EXPECT_EQ(read->stale_until - read->fresh_until, bounds::stale_time);
  EXPECT_LE(two_.now() - read->answered, 30s);
  EXPECT_FALSE(two_.read("limit", "other"));
  EXPECT_FALSE(two_.read("other", "key"));
}

TEST_F(RedisAnswersTest, KeysAreAsDocumentedAndExpire) {
  one_.write("limit", "a:b", answer(one_.now()));
  const std::int64_t fresh = pttl("weir:extcache:limit:a:b");
  EXPECT_GT(fresh, 30'000);
  EXPECT_LE(fresh, 60'000);
  const std::int64_t stale = pttl("weir:extcache:stale:limit:a:b");
  EXPECT_GT(stale, 330'000);
  EXPECT_LE(stale, 360'000);
  EXPECT_EQ(server_.ask({"DBSIZE"}), "2");
}

TEST_F(RedisAnswersTest, AfterTheFreshCopyTheStaleOneIsRead) {
  one_.write("limit", "key", answer(one_.now()));
  server_.ask({"DEL", "weir:extcache:limit:key"});
  const auto stale = two_.read("limit", "key");
  ASSERT_TRUE(stale);
  EXPECT_LE(stale->fresh_until, two_.now());
  EXPECT_GT(stale->stale_until, two_.now() + 300s);
  server_.ask({"DEL", "weir:extcache:stale:limit:key"});
  EXPECT_FALSE(two_.read("limit", "key"));
}

TEST_F(RedisAnswersTest, WhatMustNotBeKeptAsStaleIsNot) {
  one_.write("limit", "key", answer(one_.now(), 60s, 0s));
  EXPECT_EQ(server_.ask({"DBSIZE"}), "1");
  const std::optional<KeptAnswer> read = two_.read("limit", "key");  // once: each reading counts from its own now
  ASSERT_TRUE(read);
  EXPECT_EQ(read->stale_until, read->fresh_until);
  one_.write("limit", "stale only", answer(one_.now(), 0s, 300s));
  EXPECT_EQ(pttl("weir:extcache:limit:stale only"), -2);
  ASSERT_TRUE(two_.read("limit", "stale only"));
}

TEST_F(RedisAnswersTest, AnswersOfOthersAreNone) {
  one_.write("limit", "key", answer(one_.now()));
  EXPECT_FALSE(two_.read("limit", "key", "another service"));
  server_.ask({"SET", "weir:extcache:limit:odd", "nonsense", "PX", "60000"});
  EXPECT_FALSE(two_.read("limit", "odd"));
  server_.ask({"LPUSH", "weir:extcache:limit:list", "x"});
  EXPECT_FALSE(two_.read("limit", "list"));
  // The stale copy of `limit` has the name of a fresh one of a limit called "stale".
  EXPECT_FALSE(two_.read("stale", "limit:key"));
}

TEST_F(RedisAnswersTest, ACopyThatNeverExpiresIsNotUsed) {
  one_.write("limit", "key", answer(one_.now(), 60s, 0s));
  server_.ask({"PERSIST", "weir:extcache:limit:key"});
  EXPECT_FALSE(two_.read("limit", "key"));
}

// A server that forgets an answer drops it before and after Redis did, and all of that again half a second later.
constexpr std::size_t kOwnNotes = 4;

TEST_F(RedisAnswersTest, AllServersHearWhatOneForgets) {
  one_.write("limit", "a:b", answer(one_.now()));
  EXPECT_TRUE(one_.forget("limit", "a:b"));
  EXPECT_EQ(server_.ask({"EXISTS", "weir:extcache:limit:a:b", "weir:extcache:stale:limit:a:b"}), "0");
  two_.wait_for("forgotten limit/a:b");
  one_.wait_for("forgotten limit/a:b", kOwnNotes);
  EXPECT_TRUE(two_.forget("limit", "c"));
  one_.wait_for("forgotten limit/c");
  EXPECT_EQ(one_.count("forgotten limit/a:b"), kOwnNotes) << "it does not hear of itself";
  // Again, the same.
  two_.wait_for("forgotten limit/c", kOwnNotes);
  EXPECT_TRUE(one_.forget("limit", "c"));
  two_.wait_for("forgotten limit/c", kOwnNotes + 1);
}

TEST_F(RedisAnswersTest, ACallThatBeganBeforeThePurgeDoesNotBringTheOldAnswerBack) {
  for (int i = 0; i < 20; ++i) {
    const std::string key = "key" + std::to_string(i);
    EXPECT_TRUE(one_.forget("limit", key));
    two_.write("limit", key, answer(two_.now()));                        // has not heard of it yet
    if (one_.count("forgotten limit/" + key) > kOwnNotes / 2) continue;  // this machine was too slow: try again
    one_.wait_for("forgotten limit/" + key, kOwnNotes);
    EXPECT_FALSE(two_.read("limit", key));
    return;
  }
  FAIL() << "every write came too late";
}

// It may have got answers from the service while it could not reach Redis.
TEST_F(RedisAnswersTest, ANewServerIsToldWhatWasForgottenLately) {
  EXPECT_TRUE(one_.forget("limit", "old"));
  Side three(server_);
  three.wait_for("forgotten limit/old");
}

TEST_F(RedisAnswersTest, WithoutRedisOnlySharingIsLost) {
  server_.kill();
  one_.wait_until_up(false);
  EXPECT_FALSE(one_.read("limit", "key"));
  one_.write("limit", "key", answer(one_.now()));
  EXPECT_FALSE(one_.forget("limit", "key"));
  EXPECT_GE(one_.count("forgotten limit/key"), 2u) << "here it is forgotten";
  const std::string down =
      "warn external answers not shared: Redis unavailable; each server asks the service by itself";
  one_.wait_for(down);
  server_.start();
  one_.wait_until_up(true);
  one_.wait_for("info external answers shared again");
  EXPECT_EQ(one_.count(down), 1u) << "one line";
  one_.write("limit", "other", answer(one_.now()));
  EXPECT_TRUE(one_.read("limit", "other"));
}

TEST_F(RedisAnswersTest, ARedisThatDoesNotReplyIsNotWaitedFor) {
  one_.write("limit", "key", answer(one_.now()));
  server_.pause();
  EXPECT_FALSE(one_.read("limit", "key"));
  server_.resume();
  one_.wait_until_up(true);
  EXPECT_TRUE(two_.read("limit", "other") == std::nullopt);
}

}  // namespace
}  // namespace weir::external::redis_answers_test
