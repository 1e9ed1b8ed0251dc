// The content of one part of the share, parsed and sorted by kind.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/known/known.h"
#include "weir/known/known_share.h"

namespace weir {

// Return the names of an adjustment and of a block in the share. A block's name differs from that of an operator's
// entry for the same client (selector_of()).
std::string adjustment_name(std::string_view limit, std::string_view id);
std::string block_name(const AccessEntry& entry);

struct SharedSnapshot {
  std::map<std::string, Adjustment> adjustments;  // by adjustment_name()
  std::map<std::string, AccessEntry> entries;     // by selector_of()
  std::map<std::string, AccessEntry> blocks;      // the same
  std::vector<KnownShare::Expired> expired;
  // Items that are damaged, unknown, misnamed or beyond the limits.
  std::size_t skipped = 0;
  std::string first_skipped;  // its name and why
};

SharedSnapshot read_shared_snapshot(KnownShare::Part part, const KnownShare::Texts& all, Wall now);

}  // namespace weir
