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
    bool replaced = false;  // Redis held something that is not a key
  };
  using Done = std::function<void(const Result<Found>& found)>;

  // Loop and store must outlive it.
  RedisHashKey(Loop& loop, redis::Commands& commands, const std::string& key_prefix)
      : loop_(loop), commands_(commands), name_(key_prefix + "hash_key") {}

  const std::string& name() const noexcept { return name_; }
  // Gets the key. If Redis has none, stores `known` as the key, or a new one if `known` is empty. While Redis is down,
  // waits until `until`; then the Error is `unavailable`.
  void ask(const std::string& known, Time until, const Done& done);

 private:
  void load(const std::string& known, const Done& done);
  void evaluate(const std::string& offered, const Done& done);

  Loop& loop_;
  redis::Commands& commands_;
  const std::string name_;
};

}  // namespace weir::app
