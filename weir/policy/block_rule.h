// When a client that is denied often is put on the deny list for a while.
#pragma once

#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

// `access.block`, or `block` of a limit.
struct BlockRule {
  Count after = 0;    // this many denials of a client; 0: denials do not count
  Duration within{};  // within this time
  Duration lasts{};   // how long the client is denied
  Count times = 0;    // or demand of this many times its limit; 0: demand does not count

  bool any() const noexcept { return after > 0 || times > 0; }

  friend bool operator==(const BlockRule&, const BlockRule&) = default;
};

}  // namespace weir
