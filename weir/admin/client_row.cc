#include "weir/admin/client_row.h"

#include <algorithm>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/text.h"
#include "weir/core/identifier.h"
#include "weir/identify/handle.h"

namespace weir::admin {
namespace {

std::vector<const LoopClients*> clients_of(const AdminShared& shared) {
  std::vector<const LoopClients*> all;
  for (const LoopMetrics* loop : shared.loops()) all.push_back(&loop->clients);
  return all;
}

}  // namespace

std::optional<Quota> quota_of(const Policy& policy, const Known& known, const BucketOwner& owner, Now now) {
  const NamedLimit& limit = *owner.limit;
  // An override may have its own quota, but the override of a hashed id is unknown.
  if (!limit.hashed && limit.overrides.size() > 0) {
    const NamedCharge asked{limit.name, owner.id, 0};
    const Query query{NamedCharges{{&asked, 1}}, Mode::peek};
    Resolved resolved;
    if (policy.resolve(query, known, now, resolved)) {
      for (const Charge& charge : resolved.charges()) {
        if (charge.quota) return charge.quota->quota;
      }
    }
  }
  if (!limit.quota) return {};
  return limit.quota->at(limit.zone, now.wall);
}

Clients::Clients(const AdminShared& shared)
    : owners_(shared.reloader.policy()),
      known_(shared.keeper.known().current()),
      published_(shared.reloader.since()),
      clock_(shared.clock),
      services_(shared.services),
      tracked_(tracked_clients(clients_of(shared))),
      shared_(shared.reloader.current()->settings.store == config::StoreKind::redis) {}

std::optional<ClientRow> Clients::row(const StoredBucket& bucket, Now now) const {
  const auto owner = owners_.find(bucket.key.text);
  if (!owner) return {};
  if (owner->limit == nullptr) return describe(*owner, bucket, nullptr, now);
  const auto answer = answer_of(*owner->limit, owner->id, now).answer;
  const Policy::InForce in_force =
      owners_.policy().in_force(*owner->limit, owner->id, *known_, now.wall, owner->tier, answer.get());
  return describe(*owner, bucket, &in_force, now);
}

ClientRow Clients::full_row(const BucketOwner& owner, Kind kind, const Policy::InForce& in_force, Now now) const {
  const std::string key = bucket_key(*owner.limit, owner.route, owner.id, owner.tier);
  return describe(owner, {Key{key, kind}, Duration::zero(), 0}, &in_force, now);
}

Time Clients::since(const Policy::InForce& in_force, Now now) const {
  // Redis does not report it: there a bucket of other numbers looks empty until a request settles it.
  if (shared_) return now.time;
  return std::max(changed_since(in_force.changed, published_, *known_, now), in_force.since);
}

external::AnswerCache::Found Clients::answer_of(const NamedLimit& limit, std::string_view id, Now now) const {
  return services_ == nullptr ? external::AnswerCache::Found{} : services_->find(limit, id, now.time);
}

ClientRow Clients::describe(const BucketOwner& owner, const StoredBucket& bucket, const Policy::InForce* in_force,
                            Now now) const {
  const Label label = label_of(owner);
  ClientRow row;
  row.limit = std::string(label.limit);
  row.id = shown_id(label, owners_.policy().hash_key());
  row.identifier = identifier_of(label, row.id);
  row.bucket =
      owner.limit == nullptr ? std::string(bucket.key.text) : bucket_key(*owner.limit, owner.route, row.id, owner.tier);
  row.tier = owner.tier;
  row.kind = bucket.key.kind;
  row.source = "caller";
  row.reset_after = std::max(bucket.backlog, Duration::zero());
  if (const auto found = tracked_.find(std::string(bucket.key.text)); found != tracked_.end()) {
    row.counters = &found->second;
  }
  if (in_force == nullptr) return row;
  row.source = print(in_force->source);
  // These have no bucket, whatever is still stored: 0 and -1, as in answers to requests.
  if (in_force->standing == Standing::blocked) row.remaining = 0;
  if (in_force->standing == Standing::unlimited) row.remaining = kUnbounded;
  if (row.remaining) return row;
  if (row.kind == Kind::bucket) {
    if (!in_force->numbers) return row;  // it has become unlimited
    RateCharge counted;
    counted.limit = *in_force->numbers;
    counted.lease = owner.limit->lease.value_or(Lease{});
    const Limit numbers = shared_ ? counted.shared_limit() : counted.limit;
    // Read the clock again: `now` is older than charges made since.
    const Time tat = gcra::settle(numbers, now.time + bucket.backlog, since(*in_force, now), clock_.time());
    const Decision current = gcra::peek(numbers, tat, 0, now.time);
    row.numbered = true;
    row.burst = current.burst;
    row.count = numbers.count();
    row.period = numbers.period();
    row.remaining = current.remaining;
    row.reset_after = current.reset_after;
    return row;
  }
  const std::optional<Quota> quota = quota_of(owners_.policy(), *known_, owner, now);
  if (!quota) return row;
  const Decision current = quota::peek(*quota, bucket.quota_state, 0, now.wall);
  row.numbered = true;
  row.burst = quota->size;
  row.count = quota->size;
  row.period = quota->window.end - quota->window.start;
  row.remaining = current.remaining;
  row.reset_after = current.reset_after;
  return row;
}

void begin_row(const ClientRow& row, JsonWriter& json) {
  json.begin_object().key("limit").string(row.limit).key("id").string(row.id);
  json.key("identifier").string(row.identifier).key("bucket").string(row.bucket);
  if (!row.tier.empty()) json.key("tier").string(row.tier);
  if (row.numbered) {
    json.key("burst").number(row.burst).key("count").number(row.count);
    json.key("period").string(print_duration(row.period));
  } else {
    json.key("burst").null().key("count").null().key("period").null();
  }
  json.key("source").string(row.source).key("remaining");
  row.remaining ? json.number(*row.remaining) : json.null();
  json.key("reset_after").number(print_seconds(row.reset_after));
  if (row.counters == nullptr) {
    for (const std::string_view name : {"allowed", "denied", "shadow_denied", "first_seen", "last_seen"}) {
      json.key(name).null();
    }
    return;
  }
  json.key("allowed").number(static_cast<std::int64_t>(row.counters->allowed));
  json.key("denied").number(static_cast<std::int64_t>(row.counters->denied));
  json.key("shadow_denied").number(static_cast<std::int64_t>(row.counters->shadow_denied));
  json.key("first_seen").string(print_instant(row.counters->first_seen));
  json.key("last_seen").string(print_instant(row.counters->last_seen));
}

}  // namespace weir::admin
