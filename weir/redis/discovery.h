// Who is the master: as a server says of itself, and as sentinels say.
#pragma once

#include <optional>
#include <string_view>

#include "weir/base/result.h"
#include "weir/redis/targets.h"
#include "weir/wire/resp.h"

namespace weir::redis {

// What a server says of itself when asked for its ROLE.
struct Role {
  enum class Kind : unsigned char { master, replica, sentinel };
  Kind kind = Kind::master;
  Target master;  // of a replica: whom it follows

  friend bool operator==(const Role&, const Role&) = default;
};
Result<Role> read_role(const resp::Reply& reply, const Target& asked);

// The reply to SENTINEL GET-MASTER-ADDR-BY-NAME; `unknown` if that sentinel does not watch the master.
Result<Target> read_master_address(const resp::Reply& reply, const Target& asked);

// A message of a subscription to +switch-master, as an array or a push: "name old-host old-port new-host new-port". The
// new master if `message` is one and tells of the master that is called `name`.
std::optional<Target> read_switch(const resp::Reply& message, std::string_view name, const Target& asked);

}  // namespace weir::redis
