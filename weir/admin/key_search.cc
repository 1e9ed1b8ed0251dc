#include "weir/admin/key_search.h"

#include <map>
#include <utility>

#include "weir/admin/bucket_owner.h"
#include "weir/admin/scan.h"
#include "weir/base/text.h"
#include "weir/identify/attribute.h"
#include "weir/identify/handle.h"
#include "weir/observe/clients.h"

namespace weir::admin {
namespace {

// Matches to collect; more than one shows that the handle is not unique.
constexpr std::size_t kMatchesMax = 16;

class KeySearch final : public Collector {
 public:
  KeySearch(const AdminShared& shared, std::shared_ptr<const Policy> policy, NamedByHandle named, Now now,
            std::function<Outcome(const KnownKey&)> then)
      : policy_(policy), owners_(std::move(policy)), named_(std::move(named)), then_(std::move(then)) {
    whole_ = is_handle(named_.handle);
    start_ = whole_ ? shown_start(named_.handle) : std::string_view{};
    std::vector<const LoopClients*> loops;
    for (const LoopMetrics* loop : shared.loops()) loops.push_back(&loop->clients);
    for (const auto& [bucket, client] : tracked_clients(loops)) consider(policy_->find(client.limit), client.id);
    for (const Adjustment& one : shared.keeper.adjustments(now.wall)) consider(policy_->find(one.limit), one.id);
    for (const AccessEntry& entry : policy_->access().entries()) consider(entry);
    for (const auto list : {AccessEntry::List::allow, AccessEntry::List::deny}) {
      for (const AccessEntry& entry : shared.keeper.entries(list, now.wall)) consider(entry);
    }
  }

  bool take(const StoredBucket& bucket, Now) override {
    if (const auto owner = owners_.find(bucket.key.text)) consider(owner->limit, owner->id);
    return found_.size() < kMatchesMax;
  }

  Outcome reply(const std::string&) override {
    if (found_.empty()) {
      return refuse(404, "not_found", "no known API key has the handle " + quote(named_.handle));
    }
    if (found_.size() > 1) return several();
    const auto& [stored, id] = *found_.begin();
    return then_({id.empty() ? stored : id, stored});
  }

 private:
  void consider(const AccessEntry& entry) {
    if (!entry.limit.empty()) return consider(policy_->find(entry.limit), entry.id);
    if (entry.apikey.empty() || !whole_) return;
    std::string id;
    is_full_handle(entry.apikey) ? void(id = entry.apikey) : append_part(id, entry.apikey);
    consider_key(id);
  }

  void consider(const NamedLimit* limit, std::string_view id) {
    if (limit == nullptr || (named_.limit != nullptr && named_.limit != limit) || found_.size() >= kMatchesMax) return;
    if (limit->is_keyed_by_api_key()) return consider_key(id);
    if (named_.limit == nullptr || !limit->holds_api_key()) return;
    if (policy_->shown_id(limit, id) == named_.handle) found_.emplace(id, id);
  }

  void consider_key(std::string_view id) {
    if (!whole_) return;
    if (is_full_handle(id)) {
      if (id.starts_with(named_.handle)) found_.try_emplace(std::string(id));
      return;
    }
    if (!id.starts_with(start_)) return;  // cheaper than a hash
    std::string full = full_handle_of(policy_->hash_key(), id);
    if (full.starts_with(named_.handle)) found_[std::move(full)] = std::string(id);
  }

  Reply several() const {
    Reply reply;
    reply.status = 409;
    JsonWriter json(reply.content);
    json.begin_object().key("error").string("conflict");
    json.key("message").string("the handle " + quote(named_.handle) +
                               " matches more than one API key; use a longer one");
    json.key("matches").begin_array();
    for (const auto& [stored, id] : found_) {
      json.string(is_full_handle(stored) ? stored : policy_->shown_id(named_.limit, stored));
    }
    json.end_array().end_object();
    return reply;
  }

  std::shared_ptr<const Policy> policy_;
  BucketOwners owners_;
  NamedByHandle named_;
  std::function<Outcome(const KnownKey&)> then_;
  bool whole_ = false;                        // the handle is the whole id
  std::string_view start_;                    // the visible start of the key
  std::map<std::string, std::string> found_;  // ids by the form that entries store; empty: not known
};

// Returns whether one part of the id is a handle.
bool has_handle(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (is_handle(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace

std::optional<NamedByHandle> named_by_handle(const Policy& policy, std::string_view id, std::string_view limit) {
  constexpr std::string_view kKind = "apikey:";
  const NamedLimit* named = policy.find(limit);
  if (!limit.empty() && named == nullptr) return {};
  if (named == nullptr && !id.starts_with(kKind)) {
    const std::size_t colon = std::min(id.find(':'), id.size());
    named = policy.find(id.substr(0, colon));
    if (named != nullptr) id.remove_prefix(std::min(colon + 1, id.size()));
  }
  if (named == nullptr || named->is_keyed_by_api_key()) {
    if (id.starts_with(kKind)) id.remove_prefix(kKind.size());
    if (!is_handle(id)) return {};
  } else if (!named->holds_api_key() || !has_handle(id)) {
    return {};
  }
  return NamedByHandle{named, std::string(id)};
}

std::unique_ptr<Work> find_key(AdminShared& shared, std::shared_ptr<const Policy> policy, NamedByHandle named, Now now,
                               std::function<Outcome(const KnownKey&)> then) {
  return std::make_unique<Scan>(
      shared.bucket_scan, BucketScan::Look::keys,
      std::make_unique<KeySearch>(shared, std::move(policy), std::move(named), now, std::move(then)), std::string());
}

}  // namespace weir::admin
