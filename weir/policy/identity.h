// Who is counted: an id that a caller names, or that a request carries, in the one form that names a bucket.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/identify/request.h"
#include "weir/policy/named_limit.h"

namespace weir::policy {

struct Identity {
  std::string id;                   // canonical: names the bucket
  const Override* found = nullptr;  // its override, if there is one
};

// Of an id that a caller names. The Error names the limit, the id and the rule.
Result<Identity> identify(const NamedLimit& limit, std::string_view id, int ipv6_prefix);

// Of a request, by the limit's key. Nothing: a part of it is missing. REQUIRES: the limit has a key.
Result<std::optional<Identity>> identify(const NamedLimit& limit, const Request& request, int ipv6_prefix);

}  // namespace weir::policy
