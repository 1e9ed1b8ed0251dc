// From a bucket's key in the store back to whom it counts: "6@signin~pro:12345678" is the id 12345678 of the limit with
// the number 6 on the route signin, in the tier pro.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "weir/core/answer.h"
#include "weir/policy/policy.h"

namespace weir::admin {

// Keys of buckets that callers bring along begin with this (server/pipeline.cc).
inline constexpr std::string_view kOwnPrefix = "*:";

// Views into the key.
struct BucketOwner {
  const NamedLimit* limit = nullptr;  // null: a bucket of a caller's own
  std::string_view route;             // empty: none
  std::string_view id;
  std::string_view tier = {};  // empty: none
};

class BucketOwners {
 public:
  explicit BucketOwners(std::shared_ptr<const Policy> policy);

  // Nothing: a limit that is no longer there, or no key at all.
  std::optional<BucketOwner> find(std::string_view key) const;
  const Policy& policy() const noexcept { return *policy_; }

 private:
  std::shared_ptr<const Policy> policy_;
  std::unordered_map<std::string, const NamedLimit*> by_prefix_;
};

// The key of that limit's bucket for an id as Policy::bucket_id() gives it.
std::string bucket_key(const NamedLimit& limit, std::string_view route, std::string_view bucket_id,
                       std::string_view tier = {});

// For what people are shown (core/identifier.h).
Label label_of(const BucketOwner& owner);

}  // namespace weir::admin
