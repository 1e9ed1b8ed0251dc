// Policy::resolve(): identifies the client, finds the limits that apply, and builds the charges.
#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "weir/base/assert.h"
#include "weir/base/text.h"
#include "weir/identify/digest.h"
#include "weir/identify/handle.h"
#include "weir/identify/quote.h"
#include "weir/policy/asking.h"
#include "weir/policy/policy.h"

namespace weir {
namespace {

bool can_never_pass(const Charge& charge) noexcept {
  if (charge.shadow) return false;
  return (charge.rate && charge.cost > charge.rate->limit.burst()) ||
         (charge.quota && charge.cost > charge.quota->quota.size);
}

// True if both are for the same limit and id, and the same tier, because a tier's rate has its own bucket.
bool same_buckets(const Charge& a, const Charge& b) noexcept {
  const auto rate = [](const Charge& charge) { return charge.rate ? charge.rate->key : std::string_view{}; };
  const auto quota = [](const Charge& charge) { return charge.quota ? charge.quota->key : std::string_view{}; };
  return rate(a) == rate(b) && quota(a) == quota(b);
}

// Returns what a request costs on this route. A client may send the header itself: a value that is not a cost is
// refused, and of several lines the highest counts, so that no client can lower its cost.
Result<Count> cost_of(const Route& route, const Request& request) {
  if (route.cost_header.empty()) return route.cost;
  Count cost = 1;
  const std::string_view name = std::string_view(route.cost_header).substr(route.cost_header.find(':') + 1);
  Result<void> read = request.each(route.cost_header, [&](std::string_view value) -> Result<void> {
    const Result<std::int64_t> number = parse_integer(value);
    if (!number || *number < 1) {
      return Error{Fault::invalid,
                   "header " + std::string(name) + ": " + quote(value) + " must be a whole number of at least 1", 0,
                   "bad_value"};
    }
    cost = std::max(cost, *number);
    return {};
  });
  if (!read) return read.error();
  return cost;
}

// Returns the one of two entries that expires later; either may be null.
const AccessEntry* later(const AccessEntry* a, const AccessEntry* b) noexcept {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  const auto end = [](const AccessEntry& entry) { return entry.expires.value_or(Wall::max()); };
  return end(*b) > end(*a) ? b : a;
}

// What access lists can match.
struct Client {
  std::optional<IpPrefix> ip;
  std::string_view apikey;
  BucketName name;
  std::string handle;  // the API key's full handle; empty: no list has entries made by handle
};

// The entry for the client itself, and the one for its id in this limit.
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
    if (client.handle.empty() || !each->has_handles()) continue;
    found.client = later(found.client, each->find_handle(list, client.handle, now));
    if (!client.name.limit.empty()) {
      found.id = later(found.id, each->find_id(list, {client.name.limit, client.handle}, now));
    }
  }
  return found;
}

// Several entries deny: the denial ends when the last of them expires.
void extend(std::optional<Wall>& until, const AccessEntry& entry) noexcept {
  if (!until) return;
  until = entry.expires ? std::optional(std::max(*until, *entry.expires)) : std::nullopt;
}

}  // namespace

// Not defaulted in the class: clang would treat the inline constructor as consteval because of Limit's factories.
Resolved::Resolved() = default;

std::size_t Resolved::add(const Charge& charge) {
  for (std::size_t i = 0; i < charges_size_; ++i) {
    Charge& same = charges_[i];
    if (!same_buckets(same, charge)) continue;
    // A peek adds no cost to a spend of the same bucket.
    if (same.peeks && !charge.peeks) same.cost = 0;
    if (!charge.peeks || same.peeks) same.cost = saturating_sum(same.cost, charge.cost);
    same.peeks &= charge.peeks;
    return i;
  }
  if (charges_size_ == bounds::charges_max) return kNoCharge;
  if (charges_size_ == charges_.size()) charges_.emplace_back();
  charges_[charges_size_] = charge;
  return charges_size_++;
}

void Resolved::clear() {
  charges_size_ = 0;
  for (Part& part : std::span(parts_.data(), parts_size_)) part.answer.reset();
  parts_size_ = 0;
  blocked_ = kNoCharge;
  denied_ = kNoCharge;
  deny_listed_ = false;
  denied_until_.reset();
  denied_client_ = {};
  allow_listed_ = false;
  impossible_ = false;
  route_ = nullptr;
  lookups_.clear();
  lacks_backend_ = false;
  request_.clear();
  descriptors_size_ = 0;
  joins_.clear();
  text_.clear();
}

void Resolved::make_room(std::size_t keys) {
  const std::size_t bytes = keys * bounds::key_bytes_max;
  if (text_.capacity() - text_.size() >= bytes) return;
  std::string larger;
  larger.reserve(2 * text_.size() + bytes);
  larger = text_;
  const auto move = [&](std::string_view& view) {
    if (!view.empty())
      view = std::string_view(larger).substr(static_cast<std::size_t>(view.data() - text_.data()), view.size());
  };
  for (Charge& charge : std::span(charges_.data(), charges_size_)) {
    if (charge.rate) move(charge.rate->key);
    if (charge.quota) move(charge.quota->key);
  }
  for (std::size_t i = 0; i < parts_size_; ++i) move(parts_[i].id);
  for (Lookup& lookup : lookups_) move(lookup.id);
  move(denied_client_.value);
  text_.swap(larger);
}

Result<void> Policy::resolve(const Query& query, const Known& known, Now now, Resolved& out, Time published,
                             const ServiceAnswers* answers) const {
  out.clear();
  const auto* const facts = std::get_if<RequestFacts>(&query.subject);
  const Asking asking{query.mode, known, now, published, answers, facts != nullptr && facts->wants_backend};
  const auto* const named = std::get_if<NamedCharges>(&query.subject);
  if (const auto* const descriptors = std::get_if<Descriptors>(&query.subject)) {
    return resolve_descriptors(*descriptors, asking, out);
  }
  WEIR_ASSERT(facts != nullptr || named != nullptr);
  Result<void> done = facts != nullptr ? resolve_request(*facts, asking, out) : resolve_named(*named, asking, out);
  if (!done && !(out.allow_listed_ && asking.wants_backend)) return done;
  if (out.deny_listed_) {
    out.allow_listed_ = false;
    out.blocked_ = kNoCharge;
    out.charges_size_ = 0;
  } else if (out.allow_listed_) {
    for (std::size_t i = 0; i < out.parts_size_; ++i) {
      out.parts_[i].standing = Standing::allow_listed;
      out.parts_[i].charge = kNoCharge;
    }
    out.blocked_ = kNoCharge;
    out.charges_size_ = 0;
  }
  // All or none: a blocked id means none.
  const bool charges_none = out.blocked_ != kNoCharge && out.order_ == Order::together;
  if (charges_none) out.charges_size_ = 0;
  const bool passes = out.allow_listed_ && !asking.wants_backend;
  if (charges_none || passes || out.deny_listed_) out.lookups_.clear();
  out.impossible_ =
      asking.mode == Mode::spend && out.order_ == Order::in_order && std::ranges::any_of(out.charges(), can_never_pass);
  return {};
}

Result<void> Policy::resolve_named(const NamedCharges& named_charges, const Asking& asking, Resolved& out) const {
  out.order_ = named_charges.order;
  const std::span<const NamedCharge> charges = named_charges.charges;
  if (charges.size() > bounds::charges_max) {
    return Error{Fault::too_large, std::to_string(charges.size()) + " limits are named; at most " +
                                       std::to_string(bounds::charges_max) + " can be charged at once"};
  }
  for (const NamedCharge& named : charges) {
    const NamedLimit* const limit = find(named.limit);
    if (limit == nullptr) return unknown_limit(named.limit);
    if (named.cost < 0) {
      return Error{Fault::invalid, "limit " + quote(limit->name) + ": cost " + std::to_string(named.cost) +
                                       " must not be negative; a refund gives back"};
    }
    const Result<Identity> identity = identify(*limit, named.id, parts_.ipv6_prefix);
    if (!identity) return identity.error();
    const Wanted wanted{*limit, *identity, limit->mode, named.cost, nullptr, named.tier};
    if (Result<void> added = add_part(wanted, asking, out); !added) return added;
  }
  return {};
}

Result<void> Policy::resolve_request(const RequestFacts& facts, const Asking& asking, Resolved& out) const {
  out.order_ = Order::together;
  if (Result<void> read = out.request_.read(facts.attributes, parts_.trusted); !read) return read;
  // An allow-listed client is not limited, but a service may still decide where a proxy sends the request.
  if (ask_lists(asking, out) && (out.deny_listed_ || !asking.wants_backend || !has_services_)) return {};
  std::span<const std::uint32_t> limits = keyed_;
  Count cost = facts.cost.value_or(1);
  if (!routes_.empty()) {
    const Route* const route = routes_.find(out.request_);
    if (route == nullptr) return {};
    out.route_ = route;
    if (route->match.path.ignores_case()) out.request_.ignore_path_case();
    out.order_ = route->order;
    if (!route->all_limits) limits = route->limits;
    if (!facts.cost) {
      const Result<Count> number = cost_of(*route, out.request_);
      if (!number) return number.error();
      cost = *number;
    }
  }
  if (parts_.jwt.verifier != nullptr) {
    if (const std::string_view token = out.request_.token(parts_.jwt.header, parts_.jwt.cookie); !token.empty()) {
      out.request_.claim(parts_.jwt.verifier->check(token, asking.now.wall).claims);
    }
  }
  for (const std::uint32_t index : limits) {
    const NamedLimit& limit = parts_.limits[index];
    if (Result<void> done = resolve_limit(limit, facts, cost, asking, out); !done) return done;
  }
  return {};
}

// Resolves one limit of a request. A limit does not apply if it is off or the request lacks its key.
Result<void> Policy::resolve_limit(const NamedLimit& limit, const RequestFacts& facts, Count cost, const Asking& asking,
                                   Resolved& out) const {
  const Enforcement mode = out.route_ == nullptr ? limit.mode : laxer(limit.mode, out.route_->mode);
  if (mode == Enforcement::off) return {};
  const auto index = static_cast<std::size_t>(&limit - parts_.limits.data());
  const Applies applies = facts.applies.empty() ? Applies::always : facts.applies[index];
  if (applies == Applies::never) return {};
  const auto counted = std::ranges::find(facts.counted, std::string_view(limit.name), &NamedCharge::limit);
  Result<std::optional<Identity>> identity = identify(limit, out.request_, parts_.ipv6_prefix);
  if (identity && !*identity && counted != facts.counted.end()) {
    identity = identify_counted(limit, counted->id, parts_.ipv6_prefix);
  }
  // A shadow limit never refuses a request.
  const bool tolerates = mode == Enforcement::shadow;
  if (!identity && tolerates) return {};
  if (!identity) return identity.error();
  if (!*identity) {
    out.lacks_backend_ |= limit.service != nullptr && limit.service->backend_required;
    const bool may_lack = limit.missing == Missing::skip || applies == Applies::if_known || facts.may_lack_keys;
    if (may_lack || tolerates) return {};
    std::string missing;
    for (std::size_t i = 0; i < limit.sources.size(); ++i) {
      std::string value;
      if (out.request_.append_value(limit.sources[i], parts_.ipv6_prefix, value)) continue;
      missing += (missing.empty() ? "" : ", ") + limit.key[i];
    }
    return Error{Fault::invalid, "limit " + quote(limit.name) + ": the request has no " + missing, 0, "missing_key"};
  }
  if (out.parts_size_ == bounds::charges_max) {
    return Error{Fault::too_large, "more than " + std::to_string(bounds::charges_max) + " limits apply to the request"};
  }
  std::string tier = tier_of(limit, facts.caller, out.request_);
  if (tier.empty() && counted != facts.counted.end()) tier = counted->tier;
  return add_part({limit, **identity, mode, cost, out.route_, tier}, asking, out);
}

// Returns the tier of a request; empty if none. A client may send the header itself, so it counts only from a trusted
// proxy, which overwrites what clients send, and only if there is exactly one such line.
std::string Policy::tier_of(const NamedLimit& limit, std::string_view from, const Request& request) const {
  std::string tier;
  if (!limit.tier) return tier;
  if (limit.tier_source.starts_with("header:")) {
    const Result<IpAddress> caller = IpAddress::parse(from);
    const bool trusted = from == kUnixPeer ? parts_.trusted.trusts_unix() : caller && parts_.trusted.trusts(*caller);
    if (!trusted) return tier;
    int lines = 0;
    (void)request.each(limit.tier->name, [&](std::string_view) -> Result<void> {
      ++lines;
      return {};
    });
    if (lines != 1) return tier;
  }
  (void)request.append_value(*limit.tier, parts_.ipv6_prefix, tier);
  return tier;
}

bool Policy::has_handles(const Known& known) const noexcept {
  return parts_.access.has_handles() || known.entries().has_handles();
}

// Checks the client of a request, before its route is determined. Returns true if a list has decided.
bool Policy::ask_lists(const Asking& asking, Resolved& out) const {
  const Known& known = asking.known;
  if (parts_.access.empty() && known.entries().empty() && known.blocks().empty()) return false;
  Client ip;
  if (out.client_ip()) ip.ip = IpPrefix::of(*out.client_ip(), out.client_ip()->width());
  Client apikey;
  apikey.apikey = out.apikey();
  if (!apikey.apikey.empty() && has_handles(known)) apikey.handle = full_handle(apikey.apikey);
  const Wall wall = asking.now.wall;
  if (asking.decides()) {
    for (const Client& client : {ip, apikey}) {
      const AccessEntry* const entry =
          find_in(AccessEntry::List::deny, client, {&parts_.access, &known.entries(), &known.blocks()}, wall).client;
      if (entry == nullptr) continue;
      if (out.deny_listed_) {
        extend(out.denied_until_, *entry);
        continue;
      }
      out.deny_listed_ = true;
      out.denied_until_ = entry->expires;
      out.make_room(1);
      const std::size_t start = out.text_.size();
      out.text_ += client.ip ? out.client_ip()->print() : std::string(client.apikey.substr(0, bounds::id_bytes_max));
      out.denied_client_ = {client.ip ? "ip" : "apikey", std::string_view(out.text_).substr(start)};
    }
  }
  // A reset works for any client.
  if (out.deny_listed_ || asking.mode == Mode::reset) return out.deny_listed_;
  for (const Client& client : {ip, apikey}) {
    const Found found = find_in(AccessEntry::List::allow, client, {&parts_.access, &known.entries()}, wall);
    out.allow_listed_ |= found.client != nullptr;
  }
  return out.allow_listed_;
}

// Deny takes precedence over allow, and both over any limit. An allow entry for a client allows its whole query; one
// for an id of a limit exempts it from that limit only.
Standing Policy::ask_lists(const Identity& identity, const Part& part, const Asking& asking, Resolved& out) const {
  const Known& known = asking.known;
  if (parts_.access.empty() && known.entries().empty() && known.blocks().empty()) return Standing::charged;
  const std::vector<std::string>& key = part.limit->key;
  Client client;
  client.ip = identity.ip;
  if (key.size() == 1 && key.front() == "apikey") {
    client.apikey = identity.id;
    if (has_handles(known)) client.handle = full_handle_of(parts_.hash_key, identity.id);
  }
  client.name = {part.limit->name, part.id};
  const Wall wall = asking.now.wall;
  if (asking.decides()) {
    const Found denied =
        find_in(AccessEntry::List::deny, client, {&parts_.access, &known.entries(), &known.blocks()}, wall);
    if (const AccessEntry* const entry = denied.last(); entry != nullptr) {
      if (out.deny_listed_) {
        extend(out.denied_until_, *entry);
      } else {
        out.deny_listed_ = true;
        out.denied_ = out.parts_size_ - 1;
        out.denied_until_ = entry->expires;
      }
      return Standing::deny_listed;
    }
  }
  // A reset works for any client.
  if (asking.mode == Mode::reset) return Standing::charged;
  const Found allowed = find_in(AccessEntry::List::allow, client, {&parts_.access, &known.entries()}, wall);
  if (allowed.client != nullptr) out.allow_listed_ = true;
  return allowed.last() != nullptr ? Standing::allow_listed : Standing::charged;
}

const AccessEntry* Policy::denied_by(const NamedLimit& limit, std::string_view bucket_id, const Known& known,
                                     Wall wall) const {
  Client client;
  client.name = {limit.name, bucket_id};
  if (!limit.hashed && limit.id_kind != IdKind::shaped) {
    if (const Result<IpPrefix> ip = IpPrefix::parse(bucket_id)) client.ip = *ip;
  }
  if (limit.is_keyed_by_api_key()) {
    client.apikey = bucket_id;
    client.handle = is_full_handle(bucket_id) ? std::string(bucket_id) : full_handle_of(parts_.hash_key, bucket_id);
  }
  return find_in(AccessEntry::List::deny, client, {&parts_.access, &known.entries(), &known.blocks()}, wall).last();
}

Result<void> Policy::add_part(const Wanted& wanted, const Asking& asking, Resolved& out) const {
  const NamedLimit& limit = wanted.limit;
  if (limit.service != nullptr && asking.mode != Mode::reset && wanted.identity.id.starts_with(kTenantPrefix)) {
    return Error{Fault::invalid,
                 "limit " + quote(limit.name) + ": id " + quoted_id(wanted.identity.id) +
                     " must not begin with t:, which stands for tenants that a service names",
                 0, "bad_id"};
  }
  // Its own key, its tenant's, and those of its tiers' buckets.
  out.make_room((limit.tiers.empty() ? 1 : 2 + limit.tiers.size()) + (limit.service != nullptr ? 1 : 0));
  Result<std::string_view> key = write_key(limit, wanted.identity, wanted.route, out.text_);
  if (!key) return key.error();

  if (out.parts_size_ == out.parts_.size()) out.parts_.emplace_back();
  Part& part = out.parts_[out.parts_size_++];
  part = {};
  part.limit = &limit;
  part.id = key->substr(key->find(':') + 1);
  part.mode = wanted.mode;
  const Tier* const tier = limit.find_tier(wanted.tier);
  if (tier != nullptr) part.tier = tier->name;
  part.unknown_tier = tier == nullptr && !wanted.tier.empty();
  part.standing = ask_lists(wanted.identity, part, asking, out);
  const Wall wall = asking.now.wall;
  const Adjustment* adjustment = adjustment_of(limit, part.id, asking.known);
  if (limit.service != nullptr && asking.answers != nullptr && wanted.mode != Enforcement::off) {
    if (part.standing == Standing::charged || asking.wants_backend) find_answer(asking, part, out);
    if (part.standing == Standing::charged && part.answer != nullptr && !part.answer->tenant_key.empty()) {
      key = use_tenant(wanted, asking, part, adjustment, out);
      if (!key) return key.error();
    }
  }
  if (part.standing != Standing::charged) return {};

  const bool reset = asking.mode == Mode::reset;
  const Numbers numbers =
      choose(limit, wanted.identity.found, part.answer.get(), adjustment, reset ? nullptr : tier, wall);
  const bool stopped = out.blocked_ != kNoCharge;  // after a blocked limit, nothing is charged
  // Of a descriptor's alternatives, one alone denies nothing: resolve_descriptors() looks at all of them.
  const bool alternative = limit.alternative && out.descriptors_size_ > 0;
  const bool denies =
      asking.decides() && numbers.standing == Standing::blocked && wanted.mode == Enforcement::enforce && !alternative;
  if (denies && !stopped) out.blocked_ = out.parts_size_ - 1;
  part.standing = numbers.standing;
  part.source = numbers.source;
  if (reset && numbers.standing != Standing::off) {
    if (Result<void> added = forget_tiers(limit, *key, wall, out); !added) return added;
  }
  // With descriptors, all limits are peeked at.
  if (numbers.standing != Standing::charged || (stopped && out.descriptors_size_ == 0)) return {};
  return charge(numbers, *key, wanted, asking, part, out);
}

// Sets the part's answer from the limit's service, or adds a Lookup if the service must be asked first. Refunds and
// resets use only known answers.
void Policy::find_answer(const Asking& asking, Part& part, Resolved& out) const {
  ServiceAnswers::Found found = asking.answers->find(*part.limit, part.id, asking.now.time);
  part.answer = std::move(found.answer);
  if (found.ask && asking.decides()) out.lookups_.push_back({part.limit, part.id});
}

// Makes the part count the tenant that the service named, and returns the tenant's key. Lists and adjustments match the
// extracted id or the tenant's.
Result<std::string_view> Policy::use_tenant(const Wanted& wanted, const Asking& asking, Part& part,
                                            const Adjustment*& adjustment, Resolved& out) const {
  Identity tenant;
  tenant.id = std::string(kTenantPrefix) + part.answer->tenant_key;
  Result<std::string_view> key = write_key(wanted.limit, tenant, wanted.route, out.text_);
  if (!key) return key;
  part.id = key->substr(key->find(':') + 1);
  part.standing = ask_lists(tenant, part, asking, out);
  const Adjustment* const own = adjustment_of(wanted.limit, part.id, asking.known);
  if (own != nullptr && (adjustment == nullptr || own->expires > adjustment->expires)) adjustment = own;
  return key;
}

// "6:12345678", or "session@signin:…" for a limit with one bucket per route.
Result<std::string_view> Policy::write_key(const NamedLimit& limit, const Identity& identity, const Route* route,
                                           std::string& text) const {
  const std::string_view id = identity.id;
  const bool hashes = limit.hashed && !identity.hashed;
  if (hashes && parts_.hash_key.empty()) {
    return Error{Fault::internal, "limit " + quote(limit.name) + " is hashed, but there is no hash_key"};
  }
  const std::string hashed = hashes ? hashed_id(parts_.hash_key, id) : std::string();
  const std::size_t start = text.size();
  text += limit.prefix();
  if (limit.per_route && route != nullptr) text.append("@").append(route->name);
  const std::string_view written = hashes ? std::string_view(hashed) : id;
  if (text.size() - start + 1 + written.size() > bounds::key_bytes_max) {
    return Error{Fault::too_large, "limit " + quote(limit.name) + ": id " + quoted_id(id) +
                                       " makes a key longer than " + std::to_string(bounds::key_bytes_max) + " bytes"};
  }
  text.append(":").append(written);
  return std::string_view(text).substr(start);
}

namespace {

// "6@signin~pro:12345678": the bucket of one tier, next to "6@signin:12345678".
Result<std::string_view> write_tier_key(const NamedLimit& limit, std::string_view key, const Tier& tier,
                                        std::string& text) {
  if (key.size() + 1 + tier.name.size() > bounds::key_bytes_max) {
    return Error{Fault::too_large, "limit " + quote(limit.name) + ": the id with tier " + quote(tier.name) +
                                       " makes a key longer than " + std::to_string(bounds::key_bytes_max) + " bytes"};
  }
  const std::size_t start = text.size();
  const std::size_t colon = key.find(':');
  text.append(key.substr(0, colon)).append("~").append(tier.name).append(key.substr(colon));
  return std::string_view(text).substr(start);
}

Error too_many_charges() {
  return Error{Fault::too_large, "more than " + std::to_string(bounds::charges_max) +
                                     " limits and tiers would be charged at once; ask for fewer"};
}

}  // namespace

// Resets one id: the buckets of all tiers, and quotas that only a tier has. charge() adds the limit's own buckets.
Result<void> Policy::forget_tiers(const NamedLimit& limit, std::string_view key, Wall wall, Resolved& out) const {
  Charge charge;
  charge.limit_name = limit.name;
  charge.cost = 0;
  charge.on_failure = limit.failure_policy.value_or(parts_.failure_policy);
  charge.failure_code = limit.failure_code.value_or(0);
  for (const Tier& tier : limit.tiers) {
    const Result<std::string_view> tier_key = write_tier_key(limit, key, tier, out.text_);
    if (!tier_key) continue;  // too long: nothing was ever charged to it
    charge.rate = RateCharge{*tier_key};
    charge.quota.reset();
    if (tier.quota) {
      charge.quota = QuotaCharge{key, tier.quota->at(limit.zone, wall)};
    }
    if (out.add(charge) == kNoCharge) return too_many_charges();
  }
  return {};
}

Result<void> Policy::charge(const Numbers& numbers, std::string_view key, const Wanted& wanted, const Asking& asking,
                            Part& part, Resolved& out) const {
  const NamedLimit& limit = *part.limit;
  Charge charge;
  charge.limit_name = limit.name;
  charge.cost = wanted.cost;
  charge.peeks = wanted.peeks;
  charge.alternative = limit.alternative;
  charge.shadow = part.mode == Enforcement::shadow;
  charge.on_failure = limit.failure_policy.value_or(parts_.failure_policy);
  charge.failure_code = limit.failure_code.value_or(parts_.failure_code);
  if (part.answer != nullptr) {
    charge.on_failure = part.answer->failure_policy.value_or(charge.on_failure);
    charge.failure_code = part.answer->failure_code.value_or(charge.failure_code);
  }
  if (numbers.bucket) {
    RateCharge& rate = charge.rate.emplace();
    rate.key = key;
    if (numbers.tier != nullptr) {
      const Result<std::string_view> tier_key = write_tier_key(limit, key, *numbers.tier, out.text_);
      if (!tier_key) return tier_key.error();
      rate.key = *tier_key;
    }
    rate.limit = *numbers.bucket;
    rate.since = changed_since(numbers.changed, asking.published, asking.known, asking.now);
    // Without an answer the limit may have just lost one.
    if (limit.service != nullptr && asking.answers != nullptr) {
      rate.since = part.answer == nullptr ? Time::max() : std::max(rate.since, part.answer->since);
    }
    if (numbers.quota == nullptr) rate.lease = limit.lease.value_or(Lease{});
    rate.source = numbers.source;
  }
  if (numbers.quota != nullptr) {
    const Quota quota = numbers.quota->at(limit.zone, asking.now.wall);
    charge.quota = QuotaCharge{key, quota, numbers.quota_source};
  }
  part.charge = out.add(charge);
  if (part.charge == kNoCharge) return too_many_charges();
  return {};
}

}  // namespace weir
