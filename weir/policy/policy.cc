#include "weir/policy/policy.h"

#include <algorithm>
#include <limits>

#include "weir/base/text.h"
#include "weir/identify/digest.h"
#include "weir/identify/ip.h"
#include "weir/identify/quote.h"

namespace weir {
namespace {

// An id as it is looked up and as it is counted.
struct Identity {
  std::string id;                   // canonical: names the bucket
  const Override* found = nullptr;  // its override, if there is one
};

Error refuse_id(const NamedLimit& limit, const Error& error) {
  return Error{error.fault, "limit " + quote(limit.name) + ": " + error.detail};
}

// An address, or the prefix that lists show for IPv6 clients.
Result<IpPrefix> parse_client(std::string_view id, int ipv6_prefix) {
  const Result<IpAddress> address = IpAddress::parse(id);
  if (address) return IpPrefix::of(*address, 128);
  const Result<IpPrefix> prefix = IpPrefix::parse(id);
  if (prefix && !prefix->address().is_v4() && prefix->bits() == ipv6_prefix) return prefix;
  return address.error();
}

Result<Identity> identify(const NamedLimit& limit, std::string_view id, int ipv6_prefix) {
  if (limit.id_kind == IdKind::shaped) {
    Result<std::string> canonical = limit.id.canonical(id);
    if (!canonical) return refuse_id(limit, canonical.error());
    const Override* found = limit.overrides.find(*canonical);
    return Identity{std::move(*canonical), found};
  }
  const int bits = limit.id_kind == IdKind::address ? ipv6_prefix : 128;
  const Result<IpPrefix> client = parse_client(id, bits);
  if (!client) return refuse_id(limit, client.error());
  const IpAddress& address = client->address();
  const std::uint32_t* index = limit.override_prefixes.find(address);
  const bool whole = address.is_v4() || bits == 128;
  return Identity{whole ? address.print() : IpPrefix::of(address, bits).print(),
                  index == nullptr ? nullptr : &limit.overrides[*index]};
}

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

Result<void> Policy::resolve(const Query& query, Now now, Resolved& out) const {
  out.clear();
  if (query.charges.size() > bounds::charges_max) {
    return Error{Fault::too_large, std::to_string(query.charges.size()) + " limits are named; at most " +
                                       std::to_string(bounds::charges_max) + " can be charged at once"};
  }
  for (const NamedCharge& asked : query.charges) {
    if (Result<void> one = resolve_one(asked, query, now, out); !one) return one;
  }
  // All or none: a blocked id means none.
  if (out.blocked_ != kNoCharge && query.order == Order::together) out.charges_size_ = 0;
  return {};
}

// What is charged for one limit and id: numbers, a quota, both or neither.
struct Policy::Numbers {
  const Limit* bucket = nullptr;
  const policy::QuotaText* quota = nullptr;
  Source source = Source::limit;
  Standing standing = Standing::charged;
};

Policy::Numbers Policy::choose(const NamedLimit& limit, const Override* found, Wall wall) noexcept {
  Numbers chosen;
  if (limit.numbers) chosen.bucket = &*limit.numbers;
  if (limit.quota) chosen.quota = &*limit.quota;
  if (const ScheduleEntry* entry = find_entry(limit.schedule, wall); entry != nullptr) {
    chosen.bucket = &entry->numbers;
    chosen.source = Source::schedule;
  }
  if (found != nullptr && found->has_limit) {
    chosen.bucket = &found->limit;
    chosen.source = Source::override;
  }
  if (found != nullptr && found->has_quota) {
    chosen.quota = &found->quota;
    if (chosen.bucket == nullptr) chosen.source = Source::override;
  }
  if (chosen.bucket == nullptr && chosen.quota == nullptr) chosen.standing = Standing::unlimited;
  if (found != nullptr && found->kind != Override::Kind::numbers) {
    chosen.standing = found->kind == Override::Kind::blocked ? Standing::blocked : Standing::unlimited;
    chosen.source = Source::override;
  }
  if (limit.mode == Enforcement::off) chosen.standing = Standing::off;
  return chosen;
}

Result<void> Policy::resolve_one(const NamedCharge& asked, const Query& query, Now now, Resolved& out) const {
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
  const Numbers numbers = choose(*limit, identity->found, now.wall);

  const bool stopped = out.blocked_ != kNoCharge;  // behind a blocked limit nothing is charged
  const bool decides = query.mode == Mode::spend || query.mode == Mode::peek;
  const bool denies = decides && numbers.standing == Standing::blocked && limit->mode == Enforcement::enforce;
  if (denies && !stopped) out.blocked_ = out.parts_size_;
  Part& part = out.parts_[out.parts_size_++];
  part = {};
  part.limit = limit;
  part.id = key->substr(key->find(':') + 1);
  part.standing = numbers.standing;
  part.source = numbers.source;
  if (numbers.standing != Standing::charged || stopped) return {};
  return charge(numbers, *key, asked.cost, now.wall, part, out);
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
  charge.failure_code = limit.failure_code.value_or(0);
  if (numbers.bucket != nullptr) {
    charge.key = {key, Kind::bucket};
    charge.limit = *numbers.bucket;
    part.bucket = out.add(charge);
  }
  if (numbers.quota != nullptr) {
    charge.key = {key, Kind::quota};
    charge.quota = quota_at(numbers.quota->size, numbers.quota->calendar, limit.zone, wall);
    part.quota = out.add(charge);
  }
  const bool fits = (numbers.bucket == nullptr) == (part.bucket == kNoCharge) &&
                    (numbers.quota == nullptr) == (part.quota == kNoCharge);
  if (fits) return {};
  return Error{Fault::too_large,
               "more than " + std::to_string(bounds::charges_max) + " buckets would be charged at once"};
}

}  // namespace weir
