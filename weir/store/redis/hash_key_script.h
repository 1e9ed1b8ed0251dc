// hash_key.lua, built into the program.
#pragma once

#include "weir/store/redis/redis_client.h"

namespace weir::redis {

extern const Script kHashKeyScript;

}  // namespace weir::redis
