// From checked sections to the access lists of a Policy: `access.allow` and `access.deny`, and what they must agree on.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/known/access_list.h"

namespace weir::config {

// The entries with their ids as written. `root` is the whole file's node. Entries that the checker refused are left
// out.
std::vector<AccessEntry> read_access(const Document& document, NodeId root, const Limits& limits, int ipv6_prefix,
                                     Complaints& complaints);

// The same with ids as in bucket keys. Without a hash key, entries of hashed limits match no one. REQUIRES: the entries
// were read without a complaint, against these limits.
AccessList build_access(std::vector<AccessEntry> entries, std::span<const NamedLimit> limits, int ipv6_prefix,
                        std::string_view hash_key);

}  // namespace weir::config
