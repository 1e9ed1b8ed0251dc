#include "weir/policy/policy.h"

#include <algorithm>
#include <limits>

#include "weir/base/text.h"
#include "weir/identify/digest.h"
#include "weir/identify/quote.h"

namespace weir {
namespace {

Count saturating_sum(Count a, Count b) noexcept {
  return a > std::numeric_limits<Count>::max() - b ? std::numeric_limits<Count>::max() : a + b;
}

}  // namespace

std::string_view print(Enforcement mode) noexcept {
  switch (mode) {
    case Enforcement::enforce:
      return "enforce";
    case Enforcement::shadow:
      return "shadow";
    case Enforcement::off:
      return "off";
  }
  return "";
}

std::string_view print(Source source) noexcept {
  switch (source) {
    case Source::limit:
      return "limit";
    case Source::schedule:
      return "schedule";
    case Source::override:
      return "override";
    case Source::external:
      return "external";
    case Source::adjustment:
      return "adjustment";
  }
  return "";
}

std::string_view print(Standing standing) noexcept {
  switch (standing) {
    case Standing::charged:
      return "charged";
    case Standing::unlimited:
      return "unlimited";
    case Standing::blocked:
      return "blocked";
    case Standing::off:
      return "off";
    case Standing::allow_listed:
      return "allow_listed";
    case Standing::deny_listed:
      return "deny_listed";
  }
  return "";
}

// Not defaulted in the class: clang takes an inline constructor over Limit's consteval makers for one of them.
Resolved::Resolved() = default;

std::size_t Resolved::add(const Charge& charge) {
  for (std::size_t i = 0; i < charges_size_; ++i) {
    if (charges_[i].key != charge.key) continue;
    charges_[i].cost = saturating_sum(charges_[i].cost, charge.cost);
    return i;
  }
  if (charges_size_ == charges_.size()) return kNoCharge;
  charges_[charges_size_] = charge;
  return charges_size_++;
}

void Resolved::clear() {
  charges_size_ = 0;
  parts_size_ = 0;
  blocked_ = kNoCharge;
  denied_ = kNoCharge;
  denied_until_.reset();
  allow_listed_ = false;
  text_.clear();
  // Keys are views into the text: it must not move while they are written.
  text_.reserve(bounds::charges_max * bounds::key_bytes_max);
}

Policy::Policy(Parts parts) : parts_(std::move(parts)) {
  for (std::size_t i = 0; i < parts_.limits.size(); ++i) {
    by_name_.emplace(parts_.limits[i].name, i);
    override_count_ += parts_.limits[i].overrides.size();
  }
}

const NamedLimit* Policy::find(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &parts_.limits[found->second];
}

bool Policy::lacks_hash_key() const noexcept {
  return parts_.hash_key.empty() &&
         std::any_of(parts_.limits.begin(), parts_.limits.end(), [](const NamedLimit& limit) { return limit.hashed; });
}

Result<std::string> Policy::bucket_id(std::string_view limit, std::string_view id) const {
  const NamedLimit* const found = find(limit);
  if (found == nullptr) return Error{Fault::unknown, "unknown limit " + quote(limit)};
  return weir::bucket_id(*found, id, parts_.ipv6_prefix, parts_.hash_key);
}

struct Policy::Asking {
  const Query& query;
  const Known& known;
  Now now;
};

Result<void> Policy::resolve(const Query& query, const Known& known, Now now, Resolved& out) const {
  out.clear();
  if (query.charges.size() > bounds::charges_max) {
    return Error{Fault::too_large, std::to_string(query.charges.size()) + " limits are named; at most " +
                                       std::to_string(bounds::charges_max) + " can be charged at once"};
  }
  for (const NamedCharge& asked : query.charges) {
    if (Result<void> one = resolve_one(asked, {query, known, now}, out); !one) return one;
  }
  if (out.denied_ != kNoCharge) {
    out.allow_listed_ = false;
    out.blocked_ = kNoCharge;
    out.charges_size_ = 0;
  } else if (out.allow_listed_) {
    for (std::size_t i = 0; i < out.parts_size_; ++i) {
      out.parts_[i].standing = Standing::allow_listed;
      out.parts_[i].bucket = out.parts_[i].quota = kNoCharge;
    }
    out.blocked_ = kNoCharge;
    out.charges_size_ = 0;
  }
  // All or none: a blocked id means none.
  if (out.blocked_ != kNoCharge && query.order == Order::together) out.charges_size_ = 0;
  return {};
}

// What is charged for one limit and id: numbers, a quota, both or neither.
struct Policy::Numbers {
  std::optional<Limit> bucket;
  const policy::QuotaText* quota = nullptr;
  Source source = Source::limit;
  Standing standing = Standing::charged;
};

// From the weakest to the strongest; each may replace what was chosen before it. An external service's answer will
// stand between the override and the adjustment.
Policy::Numbers Policy::choose(const NamedLimit& limit, const Override* found, const Adjustment* adjustment,
                               Wall wall) {
  Numbers chosen;
  chosen.bucket = limit.numbers;
  if (limit.quota) chosen.quota = &*limit.quota;
  if (const ScheduleEntry* entry = find_entry(limit.schedule, wall); entry != nullptr) {
    chosen.bucket = entry->numbers;
    chosen.source = Source::schedule;
  }
  if (found != nullptr && found->has_limit) {
    chosen.bucket = found->limit;
    chosen.source = Source::override;
  }
  if (found != nullptr && found->has_quota) {
    chosen.quota = &found->quota;
    if (!chosen.bucket) chosen.source = Source::override;
  }
  if (!chosen.bucket && chosen.quota == nullptr) chosen.standing = Standing::unlimited;
  if (found != nullptr && found->kind != Override::Kind::numbers) {
    chosen.standing = found->kind == Override::Kind::blocked ? Standing::blocked : Standing::unlimited;
    chosen.source = Source::override;
  }
  if (adjustment != nullptr) {
    // Whoever made it saw that it fits; a reload since then may have made it one that does not, and then it sleeps.
    const Result<Limit> numbers = adjusted(*adjustment, chosen.bucket ? &*chosen.bucket : nullptr);
    if (numbers) {
      chosen.bucket = *numbers;
      chosen.source = Source::adjustment;
      chosen.standing = Standing::charged;
    }
  }
  if (limit.mode == Enforcement::off) chosen.standing = Standing::off;
  return chosen;
}

Policy::InForce Policy::in_force(const NamedLimit& limit, std::string_view bucket_id, const Known& known,
                                 Wall wall) const {
  const Override* found = nullptr;
  // Overrides of hashed limits are found by the id alone, which a hash does not tell.
  if (!limit.hashed) {
    if (const Result<Identity> identity = identify(limit, bucket_id, parts_.ipv6_prefix)) found = identity->found;
  }
  const Adjustment* const adjustment = known.adjustments().find({limit.name, bucket_id}, wall);
  const Numbers numbers = choose(limit, found, adjustment, wall);
  return {numbers.bucket, numbers.source, numbers.standing};
}

namespace {

// Which of two entries that cover a client ends later; either may be null.
const AccessEntry* later(const AccessEntry* a, const AccessEntry* b) noexcept {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  const auto end = [](const AccessEntry& entry) { return entry.expires.value_or(Wall::max()); };
  return end(*b) > end(*a) ? b : a;
}

// What lists can know somebody by.
struct Client {
  std::optional<IpPrefix> ip;
  std::string_view apikey;
  BucketName name;
};

// The entry about the client itself, and the one about its id of this limit.
struct Found {
  const AccessEntry* client = nullptr;
  const AccessEntry* id = nullptr;

  const AccessEntry* last() const noexcept { return later(client, id); }
};

Found find_in(AccessEntry::List list, const Client& client, std::initializer_list<const AccessList*> lists, Wall now) {
  Found found;
  for (const AccessList* const each : lists) {
    if (each->empty()) continue;
    if (client.ip) found.client = later(found.client, each->find_ip(list, *client.ip, now));
    if (!client.apikey.empty()) found.client = later(found.client, each->find_apikey(list, client.apikey, now));
    if (!client.name.limit.empty()) found.id = later(found.id, each->find_id(list, client.name, now));
  }
  return found;
}

}  // namespace

// Deny beats allow, and both come before any limit. An entry about a client lets its whole query pass; one about an id
// of a limit only that limit.
Standing Policy::ask_lists(const Identity& identity, const Part& part, const Asking& asking, Resolved& out) const {
  const Known& known = asking.known;
  if (parts_.access.empty() && known.entries().empty() && known.blocks().empty()) return Standing::charged;
  const std::vector<std::string>& key = part.limit->key;
  Client client;
  client.ip = identity.ip;
  if (key.size() == 1 && key.front() == "apikey") client.apikey = identity.id;
  client.name = {part.limit->name, part.id};
  const Wall wall = asking.now.wall;
  const bool decides = asking.query.mode == Mode::spend || asking.query.mode == Mode::peek;
  if (decides) {
    const Found denied =
        find_in(AccessEntry::List::deny, client, {&parts_.access, &known.entries(), &known.blocks()}, wall);
    if (const AccessEntry* const entry = denied.last(); entry != nullptr) {
      if (out.denied_ == kNoCharge) {
        out.denied_ = out.parts_size_ - 1;
        out.denied_until_ = entry->expires;
      } else if (!entry->expires || (out.denied_until_ && *entry->expires > *out.denied_until_)) {
        out.denied_until_ = entry->expires;
      }
      return Standing::deny_listed;
    }
  }
  // A reset forgets the bucket of anybody.
  if (asking.query.mode == Mode::reset) return Standing::charged;
  const Found allowed = find_in(AccessEntry::List::allow, client, {&parts_.access, &known.entries()}, wall);
  if (allowed.client != nullptr) out.allow_listed_ = true;
  return allowed.last() != nullptr ? Standing::allow_listed : Standing::charged;
}

Result<void> Policy::resolve_one(const NamedCharge& asked, const Asking& asking, Resolved& out) const {
  const NamedLimit* limit = find(asked.limit);
  if (limit == nullptr) return Error{Fault::unknown, "unknown limit " + quote(asked.limit)};
  if (asked.cost < 0) {
    return Error{Fault::invalid, "limit " + quote(limit->name) + ": cost " + std::to_string(asked.cost) +
                                     " must not be negative; a refund gives back"};
  }
  const Result<Identity> identity = identify(*limit, asked.id, parts_.ipv6_prefix);
  if (!identity) return identity.error();
  const Result<std::string_view> key = write_key(*limit, identity->id, out.text_);
  if (!key) return key.error();

  Part& part = out.parts_[out.parts_size_++];
  part = {};
  part.limit = limit;
  part.id = key->substr(key->find(':') + 1);
  part.standing = ask_lists(*identity, part, asking, out);
  if (part.standing != Standing::charged) return {};

  const Wall wall = asking.now.wall;
  const Adjustment* const adjustment = asking.known.adjustments().find({limit->name, part.id}, wall);
  const Numbers numbers = choose(*limit, identity->found, adjustment, wall);
  const Mode mode = asking.query.mode;
  const bool stopped = out.blocked_ != kNoCharge;  // behind a blocked limit nothing is charged
  const bool decides = mode == Mode::spend || mode == Mode::peek;
  const bool denies = decides && numbers.standing == Standing::blocked && limit->mode == Enforcement::enforce;
  if (denies && !stopped) out.blocked_ = out.parts_size_ - 1;
  part.standing = numbers.standing;
  part.source = numbers.source;
  if (numbers.standing != Standing::charged || stopped) return {};
  return charge(numbers, *key, asked.cost, wall, part, out);
}

Result<std::string_view> Policy::write_key(const NamedLimit& limit, const std::string& id, std::string& text) const {
  const std::string prefix = limit.prefix();
  if (limit.hashed && parts_.hash_key.empty()) {
    return Error{Fault::internal, "limit " + quote(limit.name) + " is hashed, but there is no hash_key"};
  }
  const std::string hashed = limit.hashed ? hashed_id(parts_.hash_key, id) : std::string();
  const std::string& written = limit.hashed ? hashed : id;
  const std::size_t size = prefix.size() + 1 + written.size();
  if (size > bounds::key_bytes_max) {
    return Error{Fault::too_large, "limit " + quote(limit.name) + ": id " + quoted_id(id) +
                                       " makes a key longer than " + std::to_string(bounds::key_bytes_max) + " bytes"};
  }
  const std::size_t start = text.size();
  text += prefix;
  text += ':';
  text += written;
  return std::string_view(text).substr(start);
}

Result<void> Policy::charge(const Numbers& numbers, std::string_view key, Count cost, Wall wall, Part& part,
                            Resolved& out) const {
  const NamedLimit& limit = *part.limit;
  Charge charge;
  charge.limit_name = limit.name;
  charge.cost = cost;
  charge.shadow = limit.mode == Enforcement::shadow;
  charge.on_failure = limit.failure_policy.value_or(parts_.failure_policy);
  if (numbers.bucket) {
    charge.key = {key, Kind::bucket};
    charge.limit = *numbers.bucket;
    part.bucket = out.add(charge);
  }
  if (numbers.quota != nullptr) {
    charge.key = {key, Kind::quota};
    charge.quota = quota_at(numbers.quota->size, numbers.quota->calendar, limit.zone, wall);
    part.quota = out.add(charge);
  }
  const bool fits =
      (!numbers.bucket) == (part.bucket == kNoCharge) && (numbers.quota == nullptr) == (part.quota == kNoCharge);
  if (fits) return {};
  return Error{Fault::too_large,
               "more than " + std::to_string(bounds::charges_max) + " buckets would be charged at once"};
}

}  // namespace weir
