// algorithm/gcra.lua, built into the program.
#pragma once

#include "weir/redis/redis_client.h"

namespace weir::redis {

extern const Script kGcraScript;

}  // namespace weir::redis
