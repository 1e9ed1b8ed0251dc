#include "weir/redis/shared_hash.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "weir/store/redis/redis_subject_test.h"

namespace weir::redis::shared_hash_test {
namespace {

using namespace std::chrono_literals;
using Change = SharedHash::Change;
using Texts = SharedHash::Texts;

// One server's view of a hash, called from the test's thread.
class Side {
 public:
  explicit Side(const RedisServer& server) : store_(server.port(), options()) {
    store_.wait_until(true);
    store_.thread().run([&] { hash_ = std::make_unique<SharedHash>(store_.store(), "weir:access"); });
  }
  ~Side() {
    store_.thread().run([&] { hash_.reset(); });
  }

  Result<std::size_t> change(Change change, std::vector<std::string> words) {
    std::promise<Result<std::size_t>> promise;
    store_.thread().run([&] {
      hash_->change(change, std::move(words), [&](const Result<std::size_t>& count) { promise.set_value(count); });
    });
    return promise.get_future().get();
  }
  Result<SharedHash::ReadResult> read() {
    std::promise<Result<SharedHash::ReadResult>> promise;
    store_.thread().run(
        [&] { hash_->read([&](const Result<SharedHash::ReadResult>& result) { promise.set_value(result); }); });
    return promise.get_future().get();
  }
  SharedHash& hash() { return *hash_; }
  StoreOnRedis& store() { return store_; }

 private:
  static RedisStore::Options options() {
    RedisStore::Options options = patient(1);
    options.script = kSharedHashScript;
    return options;
  }

  StoreOnRedis store_;
  std::unique_ptr<SharedHash> hash_;
};

class SharedHashTest : public testing::Test {
 protected:
  RedisServer server_;
  Side one_{server_};
  Side two_{server_};
};

TEST_F(SharedHashTest, AChangeOfOneIsNewsForTheOtherAndOnlyOnce) {
  EXPECT_TRUE(one_.read()->texts.empty());
  EXPECT_EQ(one_.change(Change::put, {"a", "1", "b", "2"}).value(), 2u);
  const auto news = two_.read();
  ASSERT_TRUE(news);
  EXPECT_TRUE(news->changed);
  EXPECT_EQ(news->texts, (Texts{{"a", "1"}, {"b", "2"}}));
  EXPECT_FALSE(two_.read()->changed);
  EXPECT_FALSE(one_.read()->changed) << "its own change is already known";
  EXPECT_EQ(two_.change(Change::remove, {"a", "c"}).value(), 1u);
  EXPECT_EQ(two_.change(Change::remove, {"a"}).value(), 0u);
  const auto again = one_.read();
  EXPECT_EQ(again->texts, (Texts{{"b", "2"}}));
  EXPECT_FALSE(again->lost);
}

TEST_F(SharedHashTest, ChangesOfBothAtOnceAreBothThere) {
  (void)one_.read();
  (void)two_.read();
  ASSERT_TRUE(one_.change(Change::put, {"a", "1"}));
  ASSERT_TRUE(two_.change(Change::put, {"b", "2"}));
  EXPECT_EQ(one_.read()->texts.size(), 2u);
  EXPECT_EQ(two_.read()->texts.size(), 2u);
}

TEST_F(SharedHashTest, FillsOnlyWhatIsMissingAndFinishesOnlyWhatIsTheSameAndOver) {
  ASSERT_TRUE(one_.change(Change::put, {"a", "1"}));
  EXPECT_EQ(one_.change(Change::fill, {"a", "9", "b", "2"}).value(), 1u);
  EXPECT_EQ(one_.change(Change::finish, {"a", "9", "1", "b", "2", "99999999999", "c", "x", "1"}).value(), 0u);
  EXPECT_EQ(one_.change(Change::finish, {"a", "1", "1"}).value(), 1u);
  EXPECT_EQ(two_.read()->texts, (Texts{{"b", "2"}}));
}

TEST_F(SharedHashTest, KnowsThatRedisHasLostWhatItKnew) {
  ASSERT_TRUE(one_.change(Change::put, {"a", "1"}));
  (void)one_.read();
  const std::string before = server_.ask({"HGET", "weir:access", "version"});
  ASSERT_TRUE(one_.change(Change::put, {"b", "2"}));
  // As after a failover: the last change never reached the new master.
  server_.ask({"HDEL", "weir:access", "b"});
  server_.ask({"HSET", "weir:access", "version", before});
  const auto news = one_.read();
  EXPECT_TRUE(news->lost);
  EXPECT_EQ(news->texts, (Texts{{"a", "1"}}));
  server_.ask({"FLUSHALL"});
  EXPECT_TRUE(one_.read()->lost);
  EXPECT_FALSE(two_.change(Change::put, {"c", "3"}).value() == 0);
  EXPECT_FALSE(one_.read()->lost) << "what others write now counts";
}

TEST_F(SharedHashTest, WhatIsChangedWhileItIsReadIsNotLost) {
  std::vector<std::string> words;
  for (int i = 0; i < 2000; ++i) words.insert(words.end(), {std::to_string(i), "x"});
  ASSERT_TRUE(one_.change(Change::put, words));
  std::promise<Texts> read;
  two_.store().thread().run([&] {
    two_.hash().read([&](const Result<SharedHash::ReadResult>& news) { read.set_value(news->texts); });
    two_.hash().change(Change::put, {"new", "y"}, [](const Result<std::size_t>& count) { EXPECT_TRUE(count); });
    two_.hash().change(Change::remove, {"7"}, [](const Result<std::size_t>& count) { EXPECT_EQ(*count, 1u); });
  });
  const Texts texts = read.get_future().get();
  EXPECT_EQ(texts.size(), 2000u);
  EXPECT_TRUE(texts.contains("new"));
  EXPECT_FALSE(texts.contains("7"));
}

TEST_F(SharedHashTest, TakesAsManyFieldsAsItMayAndNotOneMore) {
  const std::string fill = "for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], i, 'x') end";
  server_.ask({"EVAL", fill, "1", "weir:access", std::to_string(bounds::shared_fields_max)});
  ASSERT_TRUE(one_.read());
  server_.ask({"HSET", "weir:access", "one more", "x"});
  one_.store().thread().run([&] { one_.hash().invalidate(); });
  EXPECT_EQ(one_.read().error().fault, Fault::too_large);
}

TEST_F(SharedHashTest, SaysWhyItCannot) {
  server_.ask({"SET", "weir:access", "no hash"});
  EXPECT_EQ(one_.read().error().fault, Fault::unavailable);
  EXPECT_EQ(one_.change(Change::put, {"a", "1"}).error().fault, Fault::unavailable);
  server_.kill();
  one_.store().wait_until(false);
  EXPECT_EQ(one_.change(Change::put, {"a", "1"}).error().fault, Fault::unavailable);
}

}  // namespace
}  // namespace weir::redis::shared_hash_test
