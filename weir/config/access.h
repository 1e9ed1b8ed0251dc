// Builds a Policy's access lists from the checked sections `access.allow` and `access.deny`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/known/access_list.h"

namespace weir::config {

// Returns the entries with ids as written, without refused ones. `root` is the node of the whole file.
std::vector<AccessEntry> read_access(const Document& document, NodeId root, const Limits& limits, int ipv6_prefix,
                                     Complaints& complaints);

// Converts the ids to their form in bucket keys. Without a hash key, entries of hashed limits match no one. REQUIRES:
// the entries were read without a complaint, against these limits.
AccessList build_access(std::vector<AccessEntry> entries, std::span<const NamedLimit> limits, int ipv6_prefix,
                        std::string_view hash_key);

}  // namespace weir::config
