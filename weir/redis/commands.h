// Sends single commands to the node that holds a key. Implemented by the Redis store, used by everything else that
// stores data on Redis.
//
// Thread safety: none; use it on its loop's thread.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "weir/base/result.h"
#include "weir/wire/resp.h"

namespace weir::redis {

class Commands {
 public:
  virtual ~Commands() = default;

  // Sends the command to the node that holds `key`, following redirections. Calls `handler` with the reply, with
  // Redis's error, with `unavailable` (not sent), or with `timeout` (may have been applied), possibly before ask()
  // returns.
  using ReplyHandler = std::function<void(const Result<const resp::Reply*>& reply)>;
  virtual void ask(std::string_view key, std::span<const std::string_view> arguments, ReplyHandler handler) = 0;

  virtual bool is_up() const noexcept = 0;
};

}  // namespace weir::redis
