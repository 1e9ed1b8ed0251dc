// What a server learns from those that it shares with: all texts of one part, read and sorted out.
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

// How the share names an adjustment, and a block beside an operator's entry for the same client (selector_of()).
std::string adjustment_name(std::string_view limit, std::string_view id);
std::string block_name(const AccessEntry& entry);

struct SharedSnapshot {
  std::map<std::string, Adjustment> adjustments;  // by adjustment_name()
  std::map<std::string, AccessEntry> entries;     // by selector_of()
  std::map<std::string, AccessEntry> blocks;      // the same
  std::vector<KnownShare::Ended> ended;
  // What is damaged, foreign, under another's name or beyond the bounds of what may be in force.
  std::size_t skipped = 0;
  std::string first_skipped;  // and why
};

SharedSnapshot read_shared_snapshot(KnownShare::Part part, const KnownShare::Texts& all, Wall now);

}  // namespace weir
