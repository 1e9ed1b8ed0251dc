// The key of hashed limits that all servers on one Redis share, under `<prefix>hash_key`.
//
// Thread safety: none; it belongs to the loop of its store.
#pragma once

#include <functional>
#include <string>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/loop.h"
#include "weir/redis/commands.h"

namespace weir::app {

class RedisHashKey {
 public:
  struct Found {
    std::string key;
    bool replaced = false;  // something that was no key was there
  };
  using Done = std::function<void(const Result<Found>& found)>;

  // Loop and store must outlive it.
  RedisHashKey(Loop& loop, redis::Commands& commands, const std::string& key_prefix)
      : loop_(loop), commands_(commands), name_(key_prefix + "hash_key") {}

  const std::string& name() const noexcept { return name_; }
  // If Redis has none, `known` becomes it, or a fresh one if that is empty. While Redis is down it waits until `until`;
  // then the Error is `unavailable`.
  void ask(const std::string& known, Time until, const Done& done);

 private:
  void load(const std::string& known, const Done& done);
  void evaluate(const std::string& offered, const Done& done);

  Loop& loop_;
  redis::Commands& commands_;
  const std::string name_;
};

}  // namespace weir::app
