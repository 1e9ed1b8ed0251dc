// Adjustments and access entries that servers share on one Redis: the hashes `adjust` and `access` under the key
// prefix, checked twice a second.
//
// If Redis loses some of them, because it was restarted empty or a replica took over, every server restores what it
// has: an operator's deny list survives a Redis restart.
//
// Thread safety: put(), remove() and wait() may be called from any thread; everything else runs on the admin loop.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/log.h"
#include "weir/base/time.h"
#include "weir/known/known_keeper.h"
#include "weir/known/known_share.h"
#include "weir/net/loop.h"
#include "weir/redis/shared_hash.h"

namespace weir {

class RedisKnown final : public KnownShare {
 public:
  using Log = std::function<void(LogLevel, std::string_view)>;

  // `loop`, `commands` and `keeper` must outlive it. The loop may already be running.
  RedisKnown(Loop& loop, redis::Commands& commands, const std::string& key_prefix, KnownKeeper& keeper, Log log);

  void put(Part part, Texts texts, Done done) override;
  void remove(Part part, std::vector<std::string> names, Done done) override;

  // Waits up to `at_most` until everything was read once. Returns false on timeout. Returns true early if Redis rejects
  // our commands, which is logged.
  bool wait(Duration at_most);

 private:
  struct SharedPart {
    SharedPart(Part which, redis::SharedHash on_redis) : part(which), hash(std::move(on_redis)) {}

    Part part;
    redis::SharedHash hash;
    bool busy = false;
    bool failing = false;                           // the last reply was an error
    bool read = false;                              // at least once
    std::vector<std::vector<std::string>> missing;  // to be restored before the next read
  };

  void change(Part part, redis::SharedHash::Change change, std::vector<std::string> words, Done done);
  void poll();
  void poll_part(SharedPart& shared);
  void take_result(SharedPart& shared, const Result<redis::SharedHash::ReadResult>& result);
  void restore(SharedPart& shared, Texts texts);
  void restore_missing(SharedPart& shared);
  void apply_shared(SharedPart& shared, const Texts& texts);
  void log_failure(SharedPart& shared, const Error& error);
  void log_recovery();

  Loop& loop_;
  redis::Commands& commands_;
  KnownKeeper& keeper_;
  Log log_;
  std::array<SharedPart, 2> parts_;
  Time full_read_at_{};
  std::vector<std::string> logged_errors_;  // since the last recovery
  Time healthy_since_{};                    // Time{}: failing

  std::mutex mutex_;
  std::condition_variable changed_;
  bool complete_ = false;
  bool refused_ = false;  // Redis is up but refuses our commands
};

}  // namespace weir
