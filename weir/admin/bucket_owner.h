// Parses a bucket's key: "6@signin~pro:12345678" is the id 12345678 of the limit with number 6, on the route signin, in
// the tier pro.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "weir/core/answer.h"
#include "weir/policy/policy.h"

namespace weir::admin {

// Prefix of the keys of callers' own buckets, which belong to no limit (server/pipeline.cc).
inline constexpr std::string_view kOwnPrefix = "*:";

// The texts are views into the key.
struct BucketOwner {
  const NamedLimit* limit = nullptr;  // null: a caller's own bucket
  std::string_view route;             // empty: none
  std::string_view id;
  std::string_view tier = {};  // empty: none
};

class BucketOwners {
 public:
  explicit BucketOwners(std::shared_ptr<const Policy> policy);

  // Returns nullopt if the limit no longer exists or the key is invalid.
  std::optional<BucketOwner> find(std::string_view key) const;
  const Policy& policy() const noexcept { return *policy_; }

 private:
  std::shared_ptr<const Policy> policy_;
  std::unordered_map<std::string, const NamedLimit*> by_prefix_;
};

// Returns the key of the limit's bucket for an id as returned by Policy::bucket_id().
std::string bucket_key(const NamedLimit& limit, std::string_view route, std::string_view bucket_id,
                       std::string_view tier = {});

// For display (core/identifier.h).
Label label_of(const BucketOwner& owner);

}  // namespace weir::admin
