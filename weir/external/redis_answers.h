// Shares answers through Redis: `<prefix>extcache:<limit>:<key>` for its remaining time, and
// `<prefix>extcache:stale:<limit>:<key>` for bounds::stale_time longer. The value is JSON (stored_answer.h).
//
// forget() announces the answer for an hour in the hash `<prefix>extcache:forgotten` (redis/shared_hash.h). Every
// server polls it twice a second once it has used an answer.
//
// Runs on the loop of its commands, which has its own thread (app/redis_admin.h). Its functions may be called on any
// thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/clock.h"
#include "weir/base/log.h"
#include "weir/base/time.h"
#include "weir/external/shared_answers.h"
#include "weir/net/loop.h"
#include "weir/redis/commands.h"

namespace weir::external {

class RedisAnswers final : public SharedAnswers {
 public:
  struct Options {
    std::string key_prefix;
    Duration window_max;  // as in reply.h
    const Clock* clock;   // of the answers' times; the loop may have another. Must outlive it.
    std::function<void(LogLevel, std::string_view)> log;
  };
  // `commands` belong to `loop` and have loaded redis::kSharedHashScript; both must outlive it. Create it in any
  // thread; destroy it on the loop's thread, or while that does not run.
  RedisAnswers(Loop& loop, redis::Commands& commands, Options options);
  ~RedisAnswers() override;

  void read(std::string_view limit, std::string_view key, std::string_view service, Done done) override;
  void write(std::string_view limit, std::string_view key, const KeptAnswer& answer) override;
  void forget(std::string_view limit, std::string_view key, std::function<void(bool shared)> done) override;
  void on_forgotten(Forgotten forgotten) override;
  bool is_up() const noexcept override;

 private:
  class Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace weir::external
