// What servers on one Redis know together: the hashes `adjust` and `access` under the prefix, looked at twice a second.
//
// If Redis has lost some of it, because it was restarted empty or a replica took over, every server puts back what it
// knows: an operator's deny list does not end with a Redis.
//
// Thread safety: KnownShare's and wait(); everything else happens in the desk's loop.
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

  // The loop, which may run already, the store of that loop and the keeper must outlive it.
  RedisKnown(Loop& loop, redis::Commands& commands, const std::string& key_prefix, KnownKeeper& keeper, Log log);

  void put(Part part, Texts texts, Done done) override;
  void remove(Part part, std::vector<std::string> names, Done done) override;

  // Until everything was read for the first time, at most that long. False: it was not.
  bool wait(Duration at_most);

 private:
  struct Half {
    Half(Part which, redis::SharedHash shared) : part(which), hash(std::move(shared)) {}

    Part part;
    redis::SharedHash hash;
    bool busy = false;
    bool troubled = false;                       // the last answer was an error
    bool read = false;                           // once at least
    std::vector<std::vector<std::string>> owed;  // to be put back, before anything is read again
  };

  void change(Part part, redis::SharedHash::Change change, std::vector<std::string> words, Done done);
  void look();
  void look_at(Half& half);
  void heard(Half& half, const Result<redis::SharedHash::News>& news);
  void put_back(Half& half, Texts texts);
  void restore_missing(Half& half);
  void apply_shared(Half& half, const Texts& texts);
  void complain(Half& half, const Error& error);
  void log_recovery();

  Loop& loop_;
  redis::Commands& commands_;
  KnownKeeper& keeper_;
  Log log_;
  std::array<Half, 2> halves_;
  Time doubt_at_{};
  std::vector<std::string> complaints_;  // told since all was well for a while
  Time well_since_{};                    // Time{}: it is not

  std::mutex mutex_;
  std::condition_variable changed_;
  bool complete_ = false;
  bool refused_ = false;  // Redis is there, and does not let us
};

}  // namespace weir
