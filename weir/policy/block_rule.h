// When a client that is denied often is put on the deny list for a while.
#pragma once

#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

// `access.block`, or `block` of a limit.
struct BlockRule {
  Count after = 0;    // so many denials of a client; 0: not by their number
  Duration within{};  // in this time
  Duration lasts{};   // how long it is denied then
  Count times = 0;    // or when it asks for so many times what its limit gives; 0: not by that

  bool any() const noexcept { return after > 0 || times > 0; }

  friend bool operator==(const BlockRule&, const BlockRule&) = default;
};

}  // namespace weir
