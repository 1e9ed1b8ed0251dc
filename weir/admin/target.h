// Resolves the text of a call to limits and ids.
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
  const NamedLimit* limit = nullptr;  // null: a caller's own bucket
  std::string id;                     // as in bucket keys (Policy::bucket_id)
};

// "ip:203.0.113.9", "apikey:K" and "global" match every limit with that key. "Name:id" matches that limit. Anything
// else is a bare id, of every limit whose ids have that form and of a caller's own bucket. With `limit`, it is an id of
// that limit in either form. Otherwise returns the refusal.
std::variant<std::vector<Target>, Reply> targets_of(const Policy& policy, std::string_view id, std::string_view limit);

// Resolves one id of one limit.
std::variant<Target, Reply> target_of(const Policy& policy, std::string_view limit, std::string_view id);

// Returns the target for logs, with the handle of an API key.
std::string shown(const Policy& policy, const Target& target);

}  // namespace weir::admin
