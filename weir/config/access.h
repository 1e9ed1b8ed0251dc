// From checked sections to the access lists of a Policy: `access.allow` and `access.deny`, and what they must agree on.
#pragma once

#include <string_view>

#include "weir/config/document.h"
#include "weir/config/limits.h"
#include "weir/known/access_list.h"

namespace weir::config {

// What ids are written with (bucket_id.h).
struct IdOptions {
  int ipv6_prefix;
  std::string_view hash_key;  // empty: none is known yet, and then entries of hashed limits cover nobody
};

// `root` is the whole file's node. Entries that the checker refused are left out.
AccessList read_access(const Document& document, NodeId root, const Limits& limits, const IdOptions& ids,
                       Complaints& complaints);

}  // namespace weir::config
