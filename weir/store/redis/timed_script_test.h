// gcra.lua for tests that pass their own time: TIME returns the last two arguments, and nothing expires, because
// Redis's own clock keeps running. The text of the script itself is unchanged.
#pragma once

#include <string>

#include "weir/store/redis/gcra_script.h"

namespace weir::redis {

inline std::string timed_script() {
  return std::string(R"lua(
local given, ARGV = ARGV, {}
for i = 1, #given - 2 do
  ARGV[i] = given[i]
end
local redis = {
  error_reply = redis.error_reply,
  pcall = redis.pcall,
  call = function(name, ...)
    if name == 'TIME' then return {given[#given - 1], given[#given]} end
    if name == 'SET' then return redis.call(name, (select(1, ...)), (select(2, ...))) end
    return redis.call(name, ...)
  end,
}
)lua") + std::string(kGcraScript.text);
}

}  // namespace weir::redis
