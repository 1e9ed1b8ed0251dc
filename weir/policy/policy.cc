#include "weir/policy/policy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weir/base/text.h"
#include "weir/identify/digest.h"
#include "weir/identify/quote.h"
#include "weir/policy/identity.h"

namespace weir {
namespace {

Count saturating_sum(Count a, Count b) noexcept {
  return a > std::numeric_limits<Count>::max() - b ? std::numeric_limits<Count>::max() : a + b;
}

bool can_never_pass(const Charge& charge) noexcept {
  return !charge.shadow && charge.cost > (charge.key.kind == Kind::quota ? charge.quota.size : charge.limit.burst());
}

// What a request costs on this route. A header may be the client's own: whatever is not a cost is refused, and of
// several the highest counts, so that nobody peeks his way through.
Result<Count> cost_of(const Route& route, const Request& request) {
  if (route.cost_header.empty()) return route.cost;
  Count cost = 1;
  const std::string_view name = std::string_view(route.cost_header).substr(route.cost_header.find(':') + 1);
  Result<void> read = request.each(route.cost_header, [&](std::string_view value) -> Result<void> {
    const Result<std::int64_t> said = parse_integer(value);
    if (!said || *said < 1) {
      return Error{Fault::invalid,
                   "header " + std::string(name) + ": " + quote(value) + " must be a whole number of at least 1",
                   "bad_value"};
    }
    cost = std::max(cost, *said);
    return {};
  });
  if (!read) return read.error();
  return cost;
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
  impossible_ = false;
  route_ = nullptr;
  request_.clear();
  text_.clear();
  // Keys are views into the text: it must not move while they are written.
  text_.reserve(bounds::charges_max * bounds::key_bytes_max);
}

Policy::Policy(Parts parts) : parts_(std::move(parts)), routes_(std::exchange(parts_.routes, {})) {
  for (std::size_t i = 0; i < parts_.limits.size(); ++i) {
    if (!parts_.limits[i].sources.empty()) keyed_.push_back(static_cast<std::uint32_t>(i));
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

struct Policy::Asked {
  const NamedLimit& limit;
  const policy::Identity& identity;
  Enforcement mode;
  Count cost;
  const Route* route;
};

Result<void> Policy::resolve(const Query& query, Now now, Resolved& out) const {
  out.clear();
  out.order_ = query.order;
  const bool request = query.charges.empty() && !query.attributes.empty();
  if (Result<void> done = request ? resolve_request(query, now, out) : resolve_named(query, now, out); !done) {
    return done;
  }
  // All or none: a blocked id means none.
  if (out.blocked_ != kNoCharge && out.order_ == Order::together) out.charges_size_ = 0;
  out.impossible_ =
      query.mode == Mode::spend && out.order_ == Order::in_order && std::ranges::any_of(out.charges(), can_never_pass);
  return {};
}

Result<void> Policy::resolve_named(const Query& query, Now now, Resolved& out) const {
  if (query.charges.size() > bounds::charges_max) {
    return Error{Fault::too_large, std::to_string(query.charges.size()) + " limits are named; at most " +
                                       std::to_string(bounds::charges_max) + " can be charged at once"};
  }
  for (const NamedCharge& named : query.charges) {
    const NamedLimit* const limit = find(named.limit);
    if (limit == nullptr) return Error{Fault::unknown, "unknown limit " + quote(named.limit)};
    if (named.cost < 0) {
      return Error{Fault::invalid, "limit " + quote(limit->name) + ": cost " + std::to_string(named.cost) +
                                       " must not be negative; a refund gives back"};
    }
    const Result<policy::Identity> identity = policy::identify(*limit, named.id, parts_.ipv6_prefix);
    if (!identity) return identity.error();
    const Asked asked{*limit, *identity, limit->mode, named.cost, nullptr};
    if (Result<void> added = add_part(asked, query.mode, now, out); !added) return added;
  }
  return {};
}

Result<void> Policy::resolve_request(const Query& query, Now now, Resolved& out) const {
  if (Result<void> read = out.request_.read(query.attributes, parts_.trusted); !read) return read;
  std::span<const std::uint32_t> limits = keyed_;
  Count cost = query.cost;
  if (!routes_.empty()) {
    const Route* const route = routes_.find(out.request_);
    if (route == nullptr) return {};
    out.route_ = route;
    out.order_ = route->order;
    if (!route->all_limits) limits = route->limits;
    if (!query.cost_said) {
      const Result<Count> said = cost_of(*route, out.request_);
      if (!said) return said.error();
      cost = *said;
    }
  }
  for (const std::uint32_t index : limits) {
    if (Result<void> done = resolve_limit(parts_.limits[index], cost, query, now, out); !done) return done;
  }
  return {};
}

// One limit of a request. A limit that is off, and one whose key the request lacks, does not apply.
Result<void> Policy::resolve_limit(const NamedLimit& limit, Count cost, const Query& query, Now now,
                                   Resolved& out) const {
  const Enforcement mode = out.route_ == nullptr ? limit.mode : laxer(limit.mode, out.route_->mode);
  if (mode == Enforcement::off) return {};
  const Result<std::optional<policy::Identity>> identity = policy::identify(limit, out.request_, parts_.ipv6_prefix);
  if (!identity) return identity.error();
  if (!*identity) {
    if (limit.missing == Missing::skip) return {};
    std::string key;
    for (const std::string& source : limit.key) key += (key.empty() ? "" : ", ") + source;
    return Error{Fault::invalid, "limit " + quote(limit.name) + ": the request has no " + key, "missing_key"};
  }
  if (out.parts_size_ == bounds::charges_max) {
    return Error{Fault::too_large, "more than " + std::to_string(bounds::charges_max) + " limits apply to the request"};
  }
  return add_part({limit, **identity, mode, cost, out.route_}, query.mode, now, out);
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
  return chosen;
}

Result<void> Policy::add_part(const Asked& asked, Mode mode, Now now, Resolved& out) const {
  const NamedLimit& limit = asked.limit;
  const Result<std::string_view> key = write_key(limit, asked.identity.id, asked.route, out.text_);
  if (!key) return key.error();
  Numbers numbers = choose(limit, asked.identity.found, now.wall);
  if (asked.mode == Enforcement::off) numbers.standing = Standing::off;

  const bool stopped = out.blocked_ != kNoCharge;  // behind a blocked limit nothing is charged
  const bool decides = mode == Mode::spend || mode == Mode::peek;
  const bool denies = decides && numbers.standing == Standing::blocked && asked.mode == Enforcement::enforce;
  if (denies && !stopped) out.blocked_ = out.parts_size_;
  Part& part = out.parts_[out.parts_size_++];
  part = {};
  part.limit = &limit;
  part.id = key->substr(key->find(':') + 1);
  part.standing = numbers.standing;
  part.mode = asked.mode;
  part.source = numbers.source;
  if (numbers.standing != Standing::charged || stopped) return {};
  return charge(numbers, *key, asked.cost, now.wall, part, out);
}

// "6:12345678", or "session@signin:…" of a limit that has one bucket per route.
Result<std::string_view> Policy::write_key(const NamedLimit& limit, std::string_view id, const Route* route,
                                           std::string& text) const {
  if (limit.hashed && parts_.hash_key.empty()) {
    return Error{Fault::internal, "limit " + quote(limit.name) + " is hashed, but there is no hash_key"};
  }
  const std::string hashed = limit.hashed ? hashed_id(parts_.hash_key, id) : std::string();
  const std::size_t start = text.size();
  text += limit.prefix();
  if (limit.per_route && route != nullptr) text.append("@").append(route->name);
  const std::string_view written = limit.hashed ? std::string_view(hashed) : id;
  if (text.size() - start + 1 + written.size() > bounds::key_bytes_max) {
    return Error{Fault::too_large, "limit " + quote(limit.name) + ": id " + quoted_id(id) +
                                       " makes a key longer than " + std::to_string(bounds::key_bytes_max) + " bytes"};
  }
  text.append(":").append(written);
  return std::string_view(text).substr(start);
}

Result<void> Policy::charge(const Numbers& numbers, std::string_view key, Count cost, Wall wall, Part& part,
                            Resolved& out) const {
  const NamedLimit& limit = *part.limit;
  Charge charge;
  charge.limit_name = limit.name;
  charge.cost = cost;
  charge.shadow = part.mode == Enforcement::shadow;
  charge.on_failure = limit.failure_policy.value_or(parts_.failure_policy);
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
