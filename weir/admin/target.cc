#include "weir/admin/target.h"

#include "weir/admin/bucket_owner.h"
#include "weir/base/text.h"
#include "weir/identify/handle.h"

namespace weir::admin {
namespace {

bool keyed_by(const NamedLimit& limit, std::string_view source) {
  return limit.key.size() == 1 && limit.key.front() == source;
}

// Strips "ip:" or "apikey:" from an identifier of a limit with that key. Does not strip the limit's own name, because
// an id may start with it.
std::string_view id_within(const NamedLimit& limit, std::string_view id) {
  for (const std::string_view source : {"ip", "apikey"}) {
    if (keyed_by(limit, source) && id.starts_with(source) && id.substr(source.size()).starts_with(':')) {
      return id.substr(source.size() + 1);
    }
  }
  return id;
}

Reply bad_id(const Error& error) {
  return error.fault == Fault::internal ? refuse(error) : refuse(400, "bad_id", error.detail);
}

// Returns the targets of all limits with that key.
std::variant<std::vector<Target>, Reply> targets_by(const Policy& policy, std::string_view source,
                                                    std::string_view id) {
  std::vector<Target> all;
  for (const NamedLimit& limit : policy.limits()) {
    if (!keyed_by(limit, source)) continue;
    auto bucket_id = policy.bucket_id(limit.name, id);
    if (!bucket_id) return bad_id(bucket_id.error());
    all.push_back({&limit, std::move(*bucket_id)});
  }
  if (all.empty()) return refuse(404, "unknown_limit", "no limit is keyed by " + std::string(source));
  return all;
}

}  // namespace

std::variant<Target, Reply> target_of(const Policy& policy, std::string_view name, std::string_view id) {
  const NamedLimit* const limit = policy.find(name);
  if (limit == nullptr) return refuse(404, "unknown_limit", policy.unknown_limit(name).detail);
  auto bucket_id = policy.bucket_id(limit->name, id_within(*limit, id));
  if (!bucket_id) return bad_id(bucket_id.error());
  return Target{limit, std::move(*bucket_id)};
}

std::variant<std::vector<Target>, Reply> targets_of(const Policy& policy, std::string_view id, std::string_view limit) {
  if (!limit.empty()) {
    auto one = target_of(policy, limit, id);
    if (auto* reply = std::get_if<Reply>(&one)) return std::move(*reply);
    return std::vector<Target>{std::get<Target>(std::move(one))};
  }
  if (id == "global") return targets_by(policy, "global", "global");
  const std::size_t colon = id.find(':');
  const std::string_view before = id.substr(0, colon == id.npos ? 0 : colon);
  if (before == "ip" || before == "apikey") return targets_by(policy, before, id.substr(colon + 1));
  if (policy.find(before) != nullptr) return targets_of(policy, id.substr(colon + 1), before);
  std::vector<Target> all{{nullptr, std::string(id)}};
  for (const NamedLimit& each : policy.limits()) {
    if (keyed_by(each, "global")) continue;  // shared by all clients: matched by its own name only
    if (auto bucket_id = policy.bucket_id(each.name, id)) all.push_back({&each, std::move(*bucket_id)});
  }
  return all;
}

std::string shown(const Policy& policy, const Target& target) {
  return shown_identifier(label_of({target.limit, {}, target.id}), policy.hash_key());
}

}  // namespace weir::admin
