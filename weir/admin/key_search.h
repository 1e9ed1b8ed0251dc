// Finds an API key by its handle (identify/handle.h) among buckets in the store, tracked clients, adjustments and
// access entries.
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
  std::string id;      // as in bucket keys; the same as `stored` if only an entry made by handle has the key
  std::string stored;  // as in entries made by handle: the full handle, or a composite id
};

// A client named by handle. The handle may be one part of a composite id.
struct NamedByHandle {
  const NamedLimit* limit = nullptr;  // null: every limit keyed by API keys
  std::string handle;
};

// Parses text that names an API key by its handle: "sk_l…#3f9a12c4d0e1", "apikey:sk_l…#3f9a12c4d0e1",
// "LIMIT:sk_l…#3f9a12c4d0e1". `limit` may be empty.
std::optional<NamedByHandle> named_by_handle(const Policy& policy, std::string_view id, std::string_view limit);

// Searches for the key, then continues with the outcome of `then` for the one match. No match is 404; several are 409
// with their full handles.
std::unique_ptr<Work> find_key(AdminShared& shared, std::shared_ptr<const Policy> policy, NamedByHandle named, Now now,
                               std::function<Outcome(const KnownKey&)> then);

}  // namespace weir::admin
