// Parses replies that name the master: a server's own role, and what sentinels report.
#pragma once

#include <optional>
#include <string_view>

#include "weir/base/result.h"
#include "weir/redis/targets.h"
#include "weir/wire/resp.h"

namespace weir::redis {

// A server's reply to ROLE.
struct Role {
  enum class Kind : unsigned char { master, replica, sentinel };
  Kind kind = Kind::master;
  Target master;  // of a replica: its master

  friend bool operator==(const Role&, const Role&) = default;
};
Result<Role> read_role(const resp::Reply& reply, const Target& asked);

// Parses the reply to SENTINEL GET-MASTER-ADDR-BY-NAME. Returns `unknown` if that sentinel does not monitor the master.
Result<Target> read_master_address(const resp::Reply& reply, const Target& asked);

// Parses a message of the channel +switch-master, as an array or a push: "name old-host old-port new-host new-port".
// Returns the new master if the message is about the master called `name`.
std::optional<Target> read_switch(const resp::Reply& message, std::string_view name, const Target& asked);

}  // namespace weir::redis
