// Sends single commands to whichever node holds a key. Implemented by the store, used by everything else that keeps
// something on Redis.
//
// Thread safety: none; it belongs to its loop.
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

  // Sends the command to the node that holds `key`, following redirections. `heard` gets the reply, Redis's refusal,
  // `unavailable` (not sent), or `timeout` (it may have been applied). It may be called before ask() returns.
  using Heard = std::function<void(const Result<const resp::Reply*>& reply)>;
  virtual void ask(std::string_view key, std::span<const std::string_view> arguments, Heard heard) = 0;

  virtual bool is_up() const noexcept = 0;
};

}  // namespace weir::redis
