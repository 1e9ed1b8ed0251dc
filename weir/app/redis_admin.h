// What a server asks Redis apart from decisions: lists of buckets, resets of all of them, what servers share, and the
// key of hashed limits. It has one connection per master, a loop and a thread of its own, so that a long list, or a
// reply that is too large, delays no decision.
//
// Thread safety: all of it.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "weir/app/redis_hash_key.h"
#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/external/shared_answers.h"
#include "weir/known/redis_known.h"
#include "weir/net/loop.h"
#include "weir/redis/health.h"
#include "weir/redis/topology.h"
#include "weir/store/bucket_scan.h"
#include "weir/store/redis/redis_bucket_scan.h"
#include "weir/store/redis/redis_store.h"

namespace weir::app {

class RedisAdmin {
 public:
  // Does not block: Redis may be down.
  static Result<std::unique_ptr<RedisAdmin>> make(redis::RedisStore::Options options,
                                                  const redis::MakeTopology& make_topology);
  ~RedisAdmin();
  RedisAdmin(const RedisAdmin&) = delete;
  RedisAdmin& operator=(const RedisAdmin&) = delete;

  // For one loop, which must live until stop(). Buckets are visited in the redis_admin's thread.
  std::unique_ptr<BucketScan> bucket_scan(Loop& loop);

  // From now on the keeper, which must outlive the redis_admin, shares what is known with every server on this Redis.
  // Waits until that was read, at most `at_most`; false: it was not, and will be.
  bool share(KnownKeeper& keeper, RedisKnown::Log log, Duration at_most);

  // The key of hashed limits (redis_hash_key.h), waiting for Redis at most that long. Not to be called in a loop.
  Result<RedisHashKey::Found> wait_for_hash_key(Duration at_most);
  // The same without waiting; `done` is called in the redis_admin's thread.
  void ask_hash_key(const std::string& known, RedisHashKey::Done done);
  const std::string& hash_key_name() const noexcept { return hash_key_->name(); }

  // The answers of limits services that servers share on this Redis. The clock must outlive it, and it must end before
  // the redis_admin does. `window_max`: see external/reply.h.
  std::unique_ptr<external::SharedAnswers> answers(const Clock& clock, Duration window_max, redis::Health::Log log);

  // No callback is called afterwards.
  void stop();

 private:
  class LoopBucketScan;

  RedisAdmin(std::unique_ptr<BootClock> clock, std::unique_ptr<Loop> loop, redis::RedisStore::Options options,
             const redis::MakeTopology& make_topology);

  std::unique_ptr<BootClock> clock_;
  std::unique_ptr<Loop> loop_;
  std::shared_ptr<redis::DenialCache> denials_;
  std::string key_prefix_;
  redis::Health silent_{[](LogLevel, std::string_view) {}};  // the loops' stores tell how Redis fares
  // Made and used in the thread.
  std::unique_ptr<redis::RedisStore> store_;
  std::unique_ptr<redis::RedisBucketScan> bucket_scan_;
  std::unique_ptr<RedisKnown> known_;
  std::unique_ptr<RedisHashKey> hash_key_;
  std::thread thread_;
};

}  // namespace weir::app
