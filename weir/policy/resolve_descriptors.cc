// Policy::resolve() for descriptors: which rule applies to each, and which other limits count their entries.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/policy/asking.h"
#include "weir/policy/policy.h"

namespace weir {
namespace {

using enum DescriptorAnswer::Standing;

constexpr std::string_view kEntry = "descriptor:";

Error too_many_limits() {
  return Error{Fault::too_large,
               "more than " + std::to_string(bounds::charges_max) + " limits apply to the descriptors"};
}

// A period of a day or more makes a quota, which counts in windows. Numbers that do not make a valid limit (a rate
// above one per nanosecond) do not limit.
void set_own_numbers(const OwnNumbers& numbers, std::string_view key, Wall wall, Charge& charge) {
  if (numbers.period >= std::chrono::days{1}) {
    charge.quota = QuotaCharge{key, quota_at(numbers.count, numbers.period, wall), Source::caller};
  } else if (const Result<Limit> limit = Limit::make(numbers.count, numbers.period, numbers.count)) {
    charge.rate = RateCharge{.key = key, .limit = *limit, .source = Source::caller};
  }
}

// Returns the first blocked alternative, which denies the query; kNoCharge if there is none, or if another alternative
// is charged and decides.
std::size_t find_blocked_alternative(std::span<const Part> parts) noexcept {
  std::size_t found = kNoCharge;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].limit->alternative) continue;
    if (parts[i].standing == Standing::charged) return kNoCharge;
    if (parts[i].standing == Standing::blocked && found == kNoCharge) found = i;
  }
  return found;
}

// Makes alternatives count without denying. Beside a limit that enforces they stay what they are: a request that it
// denies takes nothing from them.
void let_alternatives_pass(std::span<Charge> charges) noexcept {
  if (std::ranges::any_of(charges, [](const Charge& charge) { return charge.role() == Role::enforces; })) return;
  for (Charge& charge : charges) {
    if (std::exchange(charge.alternative, false)) charge.shadow = true;
  }
}

// Whether an alternative is never out, so that the others do not deny either.
bool has_unlimited_alternative(std::span<const Part> parts, std::span<const DescriptorRule* const> rules) noexcept {
  const auto unlimited = [](const DescriptorRule* rule) {
    return rule != nullptr && rule->alternative && rule->limit == DescriptorRule::kNoLimit;
  };
  return std::ranges::any_of(rules, unlimited) || std::ranges::any_of(parts, [](const Part& part) {
           return part.limit->alternative && part.standing == Standing::unlimited;
         });
}

}  // namespace

Result<void> Policy::resolve_descriptors(const Descriptors& descriptors, const Asking& asking, Resolved& out) const {
  out.order_ = Order::together;
  if (descriptors.list.size() > bounds::descriptors_max) {
    return Error{Fault::too_large, std::to_string(descriptors.list.size()) + " descriptors are given; at most " +
                                       std::to_string(bounds::descriptors_max) + " can be"};
  }
  const DescriptorTable::Domain* const domain = parts_.descriptors.find(descriptors.domain);
  match_descriptors(descriptors, domain, out);
  for (std::size_t i = 0; domain != nullptr && i < descriptors.list.size(); ++i) {
    if (Result<void> added = add_descriptor(descriptors.list[i], *domain, i, asking, out); !added) return added;
  }
  if (!joined_.empty()) {
    if (Result<void> joined = join_limits(descriptors, asking, out); !joined) return joined;
  }
  if (has_unlimited_alternative(out.parts(), std::span(out.rules_.data(), out.descriptors_size_))) {
    let_alternatives_pass(std::span(out.charges_.data(), out.charges_size_));
  } else if (out.blocked_ == kNoCharge) {
    out.blocked_ = find_blocked_alternative(out.parts());
  }
  if (out.deny_listed_) {
    out.allow_listed_ = false;
    out.blocked_ = kNoCharge;
  }
  if (out.allow_listed_) {
    for (std::size_t i = 0; i < out.parts_size_; ++i) out.parts_[i].standing = Standing::allow_listed;
    for (std::size_t i = 0; i < out.parts_size_; ++i) out.parts_[i].charge = kNoCharge;
    for (DescriptorAnswer& answer : std::span(out.descriptors_.data(), out.descriptors_size_)) {
      if (answer.standing == decided || answer.standing == blocked) answer.standing = unlimited;
    }
    out.joins_.clear();
    out.blocked_ = kNoCharge;
    out.charges_size_ = 0;
  }
  if (out.deny_listed_ || out.allow_listed_) out.lookups_.clear();
  // Denied without a bucket: nothing is charged, but every descriptor gets the state of its bucket.
  if (out.deny_listed_ || out.blocked_ != kNoCharge) {
    for (Charge& charge : std::span(out.charges_.data(), out.charges_size_)) charge.peeks = true;
  }
  return {};
}

// Finds the rule of each descriptor. A rule does not apply if another rule of the query replaces its name.
void Policy::match_descriptors(const Descriptors& descriptors, const DescriptorTable::Domain* domain, Resolved& out) {
  const std::size_t size = descriptors.list.size();
  if (out.descriptors_.size() < size) {
    out.descriptors_.resize(size);
    out.rules_.resize(size);
    out.ids_.resize(size);
  }
  out.descriptors_size_ = size;
  std::fill_n(out.descriptors_.begin(), size, DescriptorAnswer{});
  std::fill_n(out.rules_.begin(), size, nullptr);
  if (domain == nullptr) return;
  const std::span<const DescriptorRule*> rules(out.rules_.data(), size);
  bool any_replaces = false;
  for (std::size_t i = 0; i < size; ++i) {
    if (descriptors.list[i].numbers) continue;
    rules[i] = DescriptorTable::match(*domain, descriptors.list[i].entries, out.ids_[i]);
    any_replaces |= rules[i] != nullptr && !rules[i]->replaces.empty();
  }
  if (!any_replaces) return;
  std::vector<const DescriptorRule*> kept(rules.begin(), rules.end());
  for (const DescriptorRule*& rule : kept) {
    if (rule == nullptr || rule->name.empty()) continue;
    const auto replaced = [&](const DescriptorRule* by) {
      return by != nullptr && std::ranges::find(by->replaces, rule->name) != by->replaces.end();
    };
    if (std::ranges::any_of(rules, replaced)) rule = nullptr;
  }
  std::ranges::copy(kept, rules.begin());
}

Result<void> Policy::add_descriptor(const Descriptor& descriptor, const DescriptorTable::Domain& domain,
                                    std::size_t index, const Asking& asking, Resolved& out) const {
  if (descriptor.numbers) return charge_own(descriptor, domain, index, asking, out);
  const DescriptorRule* const rule = out.rules_[index];
  if (rule == nullptr) return {};
  DescriptorAnswer& answer = out.descriptors_[index];
  answer.name = rule->name;
  answer.metadata = rule->metadata;
  answer.standing = unlimited;
  if (rule->limit == DescriptorRule::kNoLimit) return {};
  const NamedLimit& limit = parts_.limits[rule->limit];
  Identity identity;
  identity.id = out.ids_[index];
  identity.found = limit.overrides.find(identity.id);
  const Wanted wanted{limit, identity, limit.mode, descriptor.cost, nullptr, {}, descriptor.peeks};
  if (Result<void> added = add_part(wanted, asking, out); !added) return added;
  const Part& part = out.parts_[out.parts_size_ - 1];
  answer.count = rule->count;
  answer.unit = rule->unit;
  answer.multiplier = rule->multiplier;
  answer.shadow = limit.mode == Enforcement::shadow;
  answer.alternative = limit.alternative;
  if (part.standing == Standing::blocked || part.standing == Standing::deny_listed) answer.standing = blocked;
  if (part.charge == kNoCharge) return {};
  answer.standing = decided;
  answer.decision = part.charge;
  if (const Charge& charge = out.charges_[part.charge]; charge.rate && charge.rate->source == Source::external) {
    answer.count = charge.rate->limit.count();
    answer.unit = charge.rate->limit.period();
    answer.multiplier = 1;
  }
  return {};
}

// The caller's numbers replace those of any rule. Their bucket belongs to the domain.
Result<void> Policy::charge_own(const Descriptor& descriptor, const DescriptorTable::Domain& domain, std::size_t index,
                                const Asking& asking, Resolved& out) const {
  const OwnNumbers& numbers = *descriptor.numbers;
  DescriptorAnswer& answer = out.descriptors_[index];
  answer.standing = unlimited;
  answer.count = numbers.count;
  answer.unit = numbers.period;
  const NamedLimit& limit = parts_.limits[domain.own];
  std::string& id = out.ids_[index];
  DescriptorTable::write_own_id(descriptor.entries, id);
  out.make_room(1);
  const Result<std::string_view> key = write_key(limit, Identity{id, nullptr, {}, false}, nullptr, out.text_);
  if (!key) return key.error();
  if (out.parts_size_ == out.parts_.size()) out.parts_.emplace_back();
  Part& part = out.parts_[out.parts_size_++];
  part = {};
  part.limit = &limit;
  part.id = key->substr(key->find(':') + 1);
  part.source = Source::caller;
  if (numbers.count == 0) {
    part.standing = Standing::blocked;
    answer.standing = blocked;
    if (out.blocked_ == kNoCharge) out.blocked_ = out.parts_size_ - 1;
    return {};
  }
  Charge charge;
  charge.limit_name = limit.name;
  charge.cost = descriptor.cost;
  charge.peeks = descriptor.peeks;
  charge.on_failure = parts_.failure_policy;
  charge.failure_code = parts_.failure_code;
  set_own_numbers(numbers, *key, asking.now.wall, charge);
  if (charge.buckets() == 0) {
    part.standing = Standing::unlimited;
    return {};
  }
  part.charge = out.add(charge);
  if (part.charge == kNoCharge) return too_many_limits();
  answer.standing = decided;
  answer.decision = part.charge;
  return {};
}

// Adds limits whose key uses an entry of a descriptor, at the cost of the first descriptor that has the entry.
Result<void> Policy::join_limits(const Descriptors& descriptors, const Asking& asking, Resolved& out) const {
  for (const std::uint32_t index : joined_) {
    const NamedLimit& limit = parts_.limits[index];
    if (limit.mode == Enforcement::off) continue;
    // The names of these attributes belong to the sources, so they outlive the query.
    out.entries_.clear();
    std::size_t first = descriptors.list.size();
    const auto look_for = [&](const KeySource& source) {
      if (source.kind != KeySource::Kind::attribute || !source.name.starts_with(kEntry)) return;
      const std::string_view wanted = std::string_view(source.name).substr(kEntry.size());
      for (std::size_t i = 0; i < descriptors.list.size(); ++i) {
        const auto entry = std::ranges::find(descriptors.list[i].entries, wanted, &Attribute::name);
        if (entry == descriptors.list[i].entries.end()) continue;
        if (first == descriptors.list.size()) first = i;
        out.entries_.push_back({source.name, entry->value});
        return;
      }
    };
    for (const KeySource& source : limit.sources) look_for(source);
    if (first == descriptors.list.size()) continue;
    if (limit.tier) look_for(*limit.tier);
    if (Result<void> read = out.request_.read(out.entries_, parts_.trusted); !read) return read;
    const Result<std::optional<Identity>> identity = identify(limit, out.request_, parts_.ipv6_prefix);
    if (!identity) return identity.error();
    if (!*identity) continue;
    const std::string tier = tier_of(limit, {}, out.request_);
    const Descriptor& with = descriptors.list[first];
    const Wanted wanted{limit, **identity, limit.mode, with.cost, nullptr, tier, with.peeks};
    if (Result<void> added = add_part(wanted, asking, out); !added) return added;
    const Part& part = out.parts_[out.parts_size_ - 1];
    const bool blocked = part.standing == Standing::blocked && limit.mode == Enforcement::enforce;
    if (blocked || part.standing == Standing::deny_listed) {
      out.joins_.push_back({first, DescriptorAnswer::kNone, limit.name, 0, {}, false});
      if (limit.numbers) out.joins_.back().count = limit.numbers->count();
      if (limit.numbers) out.joins_.back().period = limit.numbers->period();
    }
    if (part.charge == kNoCharge) continue;
    const Charge& charge = out.charges_[part.charge];
    const bool rate = charge.rate.has_value();
    const Window window = rate ? Window{} : charge.quota->quota.window;
    out.joins_.push_back({first, part.charge, limit.name, rate ? charge.rate->limit.count() : charge.quota->quota.size,
                          rate ? charge.rate->limit.period() : window.end - window.start,
                          limit.mode == Enforcement::shadow});
  }
  return {};
}

}  // namespace weir
