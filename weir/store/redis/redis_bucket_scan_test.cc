#include "weir/store/redis/redis_bucket_scan.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <string>

#include "weir/algorithm/calendar.h"
#include "weir/store/redis/redis_cluster_test.h"

namespace weir::redis::redis_bucket_scan_test {
namespace {

using namespace std::chrono_literals;
using Look = BucketScan::Look;

constexpr Limit kHourly = Limit::per_hour(10);

Charge of(const std::string& key, Kind kind = Kind::bucket) {
  Charge charge;
  charge.limit_name = "limit";
  const Wall start = std::chrono::floor<std::chrono::hours>(BootClock::wall());
  if (kind == Kind::bucket) charge.rate = RateCharge{key, kHourly};
  if (kind == Kind::quota) charge.quota = QuotaCharge{key, {5, {start, start + 1h}, start + 2h}};
  return charge;
}

// A bucket_scan on a store's loop, called from the test's thread.
class Walker {
 public:
  explicit Walker(StoreOnRedis& store, RedisBucketScan::Options options = {}) : store_(store) {
    store_.thread().run([&] {
      bucket_scan_ = std::make_unique<RedisBucketScan>(store_.thread().loop(), store_.store(), std::move(options));
    });
  }
  ~Walker() {
    store_.thread().run([&] { bucket_scan_.reset(); });
  }

  Result<BucketScan::Step> visit(const std::string& cursor, Look look, const BucketScan::Visit& visit) {
    std::promise<Result<BucketScan::Step>> promise;
    store_.thread().run([&] {
      bucket_scan_->visit(cursor, look, store_.thread().loop().now(), visit,
                          [&](const Result<BucketScan::Step>& step) { promise.set_value(step); });
    });
    return promise.get_future().get();
  }
  Result<BucketScan::Step> forget(const std::string& cursor) {
    std::promise<Result<BucketScan::Step>> promise;
    store_.thread().run([&] {
      bucket_scan_->forget(cursor, store_.thread().loop().now(),
                           [&](const Result<BucketScan::Step>& step) { promise.set_value(step); });
    });
    return promise.get_future().get();
  }

  // Scans everything, `page` buckets at a time; returns how often each was seen.
  std::map<std::string, int> walk(std::size_t page, Look look = Look::states) {
    std::map<std::string, int> seen;
    std::string cursor;
    do {
      std::size_t count = 0;
      const auto step = visit(cursor, look, [&](const StoredBucket& bucket) {
        ++seen[(bucket.key.kind == Kind::quota ? "quota " : "") + std::string(bucket.key.text)];
        if (look == Look::states && bucket.key.kind == Kind::bucket) {
          EXPECT_GT(bucket.backlog, 5min);
          EXPECT_LE(bucket.backlog, 1h);
        }
        if (look == Look::states && bucket.key.kind == Kind::quota) {
          EXPECT_EQ(quota::unpack(bucket.quota_state).used, 1);
        }
        return ++count < page;
      });
      EXPECT_LE(count, page);
      if (!step) {
        ADD_FAILURE() << step.error().detail;
        break;
      }
      cursor = step->cursor;
    } while (!cursor.empty());
    return seen;
  }

 private:
  StoreOnRedis& store_;
  std::unique_ptr<RedisBucketScan> bucket_scan_;
};

// Spends one token from each.
void fill(StoreOnRedis& store, const std::vector<std::string>& names, Kind kind = Kind::bucket) {
  std::vector<Charge> charges;
  charges.reserve(names.size());
  for (const std::string& name : names) charges.push_back(of(name, kind));
  std::vector<Question> batch;
  batch.reserve(charges.size());
  for (const Charge& charge : charges) batch.push_back({0, {&charge, 1}});
  for (const auto& answer : store.ask(batch)) ASSERT_TRUE(answer) << answer.error().detail;
}

std::vector<std::string> names(int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back("per-ip:" + std::to_string(i));
  return all;
}

void expect_each_once(const std::map<std::string, int>& seen, std::size_t count) {
  EXPECT_EQ(seen.size(), count);
  for (const auto& [name, times] : seen) ASSERT_EQ(times, 1) << name;
}

TEST(RedisBucketScan, ReadsEveryKindOfKeyAndNoOther) {
  std::string room;
  const auto within = [&](std::string_view text, std::string_view tag = {}) {
    const auto key = key_within(text, "weir:", tag, room);
    return key ? std::string(key->kind == Kind::quota ? "quota " : "") + std::string(key->text) : "none";
  };
  EXPECT_EQ(within("weir:b:6@signin:12"), "6@signin:12");
  EXPECT_EQ(within("weir:w:daily:7"), "quota daily:7");
  EXPECT_EQ(within("weir:a:mine"), "*:mine");
  EXPECT_EQ(within("weir:{t}b:x:1", "t"), "x:1");
  for (const std::string_view other : {"weir:adjust", "weir:access", "weir:hash_key", "weir:extcache:b:1",
                                       "weir:", "weir:b", "weir:c:1", "other:b:1", "b:1", ""}) {
    EXPECT_EQ(within(other), "none") << other;
    EXPECT_EQ(within(other, "t"), "none") << other;
  }
  EXPECT_EQ(within("weir:b:x:1", "t"), "none");
}

TEST(RedisBucketScan, SeesEveryBucketOnceWhateverThePageAndForgetsThemInSteps) {
  RedisServer server;
  StoreOnRedis store(server.port(), patient(1));
  store.wait_until(true);
  fill(store, names(1000));
  fill(store, {"daily:1"}, Kind::quota);
  fill(store, {"*:mine"});
  for (const std::string_view key : {"weir:hash_key", "weir:extcache:b:1", "other:b:1"}) {
    server.ask({"SET", std::string(key), "x"});
  }
  server.ask({"HSET", "weir:adjust", "version", "1.x"});
  server.ask({"SET", "weir:b:broken:1", "not a number"});
  server.ask({"SET", "weir:w:daily:reset", "40000000:0"});
  server.ask({"LPUSH", "weir:b:broken:2", "x"});
  Walker walker(store);
  for (const std::size_t page : {7ul, 300ul, 100'000ul}) expect_each_once(walker.walk(page), 1002);
  expect_each_once(walker.walk(100'000, Look::keys), 1004);
  std::uint64_t forgotten = 0;
  std::string cursor;
  int steps = 0;
  do {
    const auto step = walker.forget(cursor);
    ASSERT_TRUE(step) << step.error().detail;
    forgotten += step->forgotten;
    cursor = step->cursor;
    ++steps;
  } while (!cursor.empty());
  EXPECT_EQ(forgotten, 1005u);
  EXPECT_GT(steps, 1);
  EXPECT_EQ(server.ask({"DBSIZE"}), "4") << "what is no bucket stays";
}

TEST(RedisBucketScan, KnowsHowFarItIs) {
  RedisServer server;
  StoreOnRedis store(server.port(), patient(1));
  store.wait_until(true);
  fill(store, names(4000));
  Walker walker(store);
  std::string cursor;
  std::uint64_t seen = 0;
  do {
    const auto step = walker.visit(cursor, Look::keys, [&](const StoredBucket&) { return ++seen > 0; });
    ASSERT_TRUE(step);
    cursor = step->cursor;
    const double part = static_cast<double>(seen) / 4000;
    EXPECT_NEAR(step->millionths / 1e6, part, 0.05);
  } while (!cursor.empty());
}

TEST(RedisBucketScan, TakesPrefixAndHashTagLiterally) {
  RedisServer server;
  RedisStore::Options options = patient(1);
  options.key_prefix = "w*?[x]\\:";
  options.hash_tag = "t";
  StoreOnRedis store(server.port(), options);
  store.wait_until(true);
  fill(store, {"a:1", "a:2"});
  server.ask({"SET", "wyyx\\:{t}b:a:3", "1"});
  Walker walker(store, {options.key_prefix, "t", {}});
  expect_each_once(walker.walk(10), 2);
}

TEST(RedisBucketScan, CopesWithKeysSoLongThatAPageOfThemIsTooMuch) {
  RedisServer server;
  StoreOnRedis store(server.port(), patient(1));
  store.wait_until(true);
  std::vector<std::string> all;
  for (int i = 0; i < 40; ++i) all.push_back("*:" + std::to_string(i) + std::string(60'000, 'x'));
  fill(store, all);
  Walker walker(store);
  expect_each_once(walker.walk(1000), 40);
}

TEST(RedisBucketScan, SaysWhyItCannot) {
  RedisServer server;
  StoreOnRedis store(server.port(), patient(1));
  store.wait_until(true);
  Walker walker(store);
  for (const std::string cursor : {"x", "-1", "1", "1.2.3", "1.2.3.4.5", ".", "1.", "1.12345678901234567", "1.0x"}) {
    const auto step = walker.forget(cursor);
    ASSERT_FALSE(step) << cursor;
    EXPECT_EQ(step.error().fault, Fault::invalid) << cursor;
  }
  EXPECT_EQ(walker.forget("1.0").error().fault, Fault::unavailable) << "a master that is none any more";
  server.kill();
  store.wait_until(false);
  EXPECT_EQ(walker.forget({}).error().fault, Fault::unavailable);
}

TEST_F(Cluster, AllMastersAreListedAndForgotten) {
  const auto store = serve();
  fill(*store, names(300));
  Walker walker(*store);
  for (const std::size_t page : {7ul, 1000ul}) expect_each_once(walker.walk(page), 300);
  std::uint64_t forgotten = 0;
  std::string cursor;
  do {
    const auto step = walker.forget(cursor);
    ASSERT_TRUE(step) << step.error().detail;
    forgotten += step->forgotten;
    cursor = step->cursor;
  } while (!cursor.empty());
  EXPECT_EQ(forgotten, 300u);
  for (const auto& node : nodes_) EXPECT_EQ(node->ask({"DBSIZE"}), "0");
}

}  // namespace
}  // namespace weir::redis::redis_bucket_scan_test
