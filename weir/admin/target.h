// Whom an operator means: from the text of a path to limits and ids.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/admin/work.h"
#include "weir/policy/policy.h"

namespace weir::admin {

struct Target {
  const NamedLimit* limit = nullptr;  // null: a bucket of a caller's own
  std::string id;                     // as it stands in bucket keys (Policy::bucket_id)
};

// "ip:203.0.113.9", "apikey:K", "global": every limit that is keyed so. "Name:id": that limit. Anything else: a bare
// id, of every limit whose ids look like that, and of a bucket of a caller's own. With a limit, an id of that limit, in
// either form. Or why not.
std::variant<std::vector<Target>, Reply> targets_of(const Policy& policy, std::string_view id, std::string_view limit);

// One id of one limit.
std::variant<Target, Reply> target_of(const Policy& policy, std::string_view limit, std::string_view id);

// For logs: of an API key its handle.
std::string shown(const Policy& policy, const Target& target);

}  // namespace weir::admin
