// Builds a Policy's limits from the checked sections `limits`, `names` and `overrides`, and checks that these agree.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/numbers.h"
#include "weir/policy/named_limit.h"

namespace weir::config {

// The limits read so far.
struct Limits {
  std::vector<NamedLimit> made;
  std::vector<NodeId> nodes;     // where each was first named
  std::vector<Written> written;  // the numbers of each as written: its overrides inherit them
  std::map<std::string, std::size_t, std::less<>> by_name;
  bool complete = true;  // false: `limits` or `names` could not be read; an unknown name may be defined there
};

// Returns the entries of a top-level map; empty if it is not a map.
Document::Children entries_of(const Document& document, NodeId root, std::string_view name);

// `root` is the node of the whole file. Only the names of refused entries are used.
Limits read_limits(const Document& document, NodeId root, Complaints& complaints, std::vector<std::string>& warnings);

// Reads `overrides` into the limits they are for.
void read_overrides(const Document& document, NodeId root, int ipv6_prefix, Limits& limits, Complaints& complaints);

}  // namespace weir::config
