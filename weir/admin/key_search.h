// From the handle of an API key (identify/handle.h) to the key. Looks through whatever knows keys: buckets in the
// store, tracked clients, adjustments and access entries.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/admin/admin_shared.h"
#include "weir/admin/work.h"
#include "weir/policy/policy.h"

namespace weir::admin {

struct KnownKey {
  std::string id;      // as in bucket keys; what `stored` is where only an entry made by handle knows the key
  std::string stored;  // what an entry made by handle stores: the full handle; of an id with several parts the id
};

// A client named by handle. The handle may be one part of an id with several.
struct NamedByHandle {
  const NamedLimit* limit = nullptr;  // null: every limit keyed by API keys
  std::string handle;
};

// What an operator's text names, if that is an API key by its handle: "sk_l…#3f9a12c4d0e1",
// "apikey:sk_l…#3f9a12c4d0e1", "LIMIT:sk_l…#3f9a12c4d0e1". `limit` may be empty.
std::optional<NamedByHandle> named_by_handle(const Policy& policy, std::string_view id, std::string_view limit);

// Searches, then goes on with what `then` returns for the one key that the handle means. No such key is 404, several
// are 409 with their full handles.
std::unique_ptr<Work> find_key(AdminShared& shared, std::shared_ptr<const Policy> policy, NamedByHandle named, Now now,
                               std::function<Outcome(const KnownKey&)> then);

}  // namespace weir::admin
