#include "weir/admin/bucket_owner.h"

#include <algorithm>
#include <utility>

namespace weir::admin {

BucketOwners::BucketOwners(std::shared_ptr<const Policy> policy) : policy_(std::move(policy)) {
  for (const NamedLimit& limit : policy_->limits()) by_prefix_.emplace(limit.prefix(), &limit);
}

std::optional<BucketOwner> BucketOwners::find(std::string_view key) const {
  if (key.starts_with(kOwnPrefix)) return BucketOwner{nullptr, {}, key.substr(kOwnPrefix.size())};
  const std::size_t colon = key.find(':');
  if (colon == key.npos) return {};
  std::string_view before = key.substr(0, colon);
  const std::size_t tilde = std::min(before.find('~'), before.size());
  const std::string_view tier = before.substr(std::min(tilde + 1, before.size()));
  before = before.substr(0, tilde);
  const std::size_t at = std::min(before.find('@'), before.size());
  const auto found = by_prefix_.find(std::string(before.substr(0, at)));
  if (found == by_prefix_.end()) return {};
  return BucketOwner{found->second, before.substr(std::min(at + 1, before.size())), key.substr(colon + 1), tier};
}

std::string bucket_key(const NamedLimit& limit, std::string_view route, std::string_view bucket_id,
                       std::string_view tier) {
  std::string key = limit.prefix();
  if (!route.empty()) key.append("@").append(route);
  if (!tier.empty()) key.append("~").append(tier);
  return key.append(":").append(bucket_id);
}

Label label_of(const BucketOwner& owner) {
  Label label;
  label.id = owner.id;
  if (owner.limit == nullptr) return label;
  label.limit = owner.limit->name;
  label.key = owner.limit->key.size() == 1 ? std::string_view(owner.limit->key.front()) : std::string_view{};
  label.limiter_type = owner.limit->limiter_type;
  label.secret = owner.limit->holds_api_key(owner.id);
  return label;
}

}  // namespace weir::admin
