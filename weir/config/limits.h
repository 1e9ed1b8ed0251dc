// From checked sections to the limits of a Policy: `limits`, `names` and `overrides`, and what they must agree on.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/numbers.h"
#include "weir/policy/named_limit.h"

namespace weir::config {

// Limits while they are read.
struct Limits {
  std::vector<NamedLimit> made;
  std::vector<NodeId> nodes;     // where each was first named
  std::vector<Written> written;  // the numbers of each as written: its overrides inherit them
  std::map<std::string, std::size_t, std::less<>> by_name;
  bool complete = true;  // false: `limits` or `names` could not be read, so that a name unknown here may be theirs
};

// Entries of a map at the top of the file; none if it is no map.
Document::Children entries_of(const Document& document, NodeId root, std::string_view name);

// `root` is the whole file's node. Entries that the checker refused take part by name only.
Limits read_limits(const Document& document, NodeId root, Complaints& complaints, std::vector<std::string>& warnings);

// Reads `overrides` into the limits they are for.
void read_overrides(const Document& document, NodeId root, int ipv6_prefix, Limits& limits, Complaints& complaints);

}  // namespace weir::config
