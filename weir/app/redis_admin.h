// Everything a server asks Redis apart from decisions: lists of buckets, resets of all buckets, state that servers
// share, and the key of hashed limits. Has its own thread and loop and one connection per master, so that a long list
// or an oversized reply delays no decision.
//
// Thread-safe.
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

  // Creates the scan of one loop, which must live until stop(). Buckets are visited on this object's thread.
  std::unique_ptr<BucketScan> bucket_scan(Loop& loop);

  // From now on shares the keeper's run-time state with every server on this Redis. Waits at most `at_most` for the
  // first read; returns false if it is still to come. The keeper must outlive this object.
  bool share(KnownKeeper& keeper, RedisKnown::Log log, Duration at_most);

  // Returns the key of hashed limits (redis_hash_key.h). Blocks for at most `at_most`, so do not call it on a loop.
  Result<RedisHashKey::Found> wait_for_hash_key(Duration at_most);
  // The same without blocking. Calls `done` on this object's thread.
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
  redis::Health silent_{[](LogLevel, std::string_view) {}};  // the loops' stores log the health of Redis
  // Made and used in the thread.
  std::unique_ptr<redis::RedisStore> store_;
  std::unique_ptr<redis::RedisBucketScan> bucket_scan_;
  std::unique_ptr<RedisKnown> known_;
  std::unique_ptr<RedisHashKey> hash_key_;
  std::thread thread_;
};

}  // namespace weir::app
