#include "weir/policy/policy.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/nearest.h"
#include "weir/base/text.h"
#include "weir/core/answer.h"
#include "weir/identify/attribute.h"
#include "weir/identify/digest.h"
#include "weir/identify/handle.h"
#include "weir/policy/bucket_id.h"

namespace weir {
namespace {

constexpr std::string_view kMarked = "weir hash mark";

bool counts_entries(const KeySource& source) noexcept {
  return source.kind == KeySource::Kind::attribute && source.name.starts_with("descriptor:");
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

Policy::Policy(Parts parts) : parts_(std::move(parts)), routes_(std::exchange(parts_.routes, {})) {
  blocks_ = parts_.block.any();
  if (!parts_.hash_key.empty()) hash_mark_ = hashed_id(parts_.hash_key, kMarked).substr(0, bounds::hash_mark_bytes);
  for (std::size_t i = 0; i < parts_.limits.size(); ++i) {
    if (!parts_.limits[i].sources.empty()) keyed_.push_back(static_cast<std::uint32_t>(i));
    if (std::ranges::any_of(parts_.limits[i].sources, counts_entries)) joined_.push_back(static_cast<std::uint32_t>(i));
    by_name_.emplace(parts_.limits[i].name, i);
    override_count_ += parts_.limits[i].overrides.size();
    blocks_ |= parts_.limits[i].block.any();
    has_services_ |= parts_.limits[i].service != nullptr;
  }
}

const NamedLimit* Policy::find(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &parts_.limits[found->second];
}

Error Policy::unknown_limit(std::string_view name) const {
  std::vector<std::string_view> names;
  // Callers may send many unknown names; comparing each with very many limits would cost more than a decision.
  constexpr std::size_t kCompared = 100;
  if (parts_.limits.size() <= kCompared) {
    for (const NamedLimit& limit : parts_.limits) names.push_back(limit.name);
  }
  const std::string_view near = nearest_word(names, name);
  return Error{Fault::unknown,
               "unknown limit " + quote(name) + (near.empty() ? "" : "; did you mean " + quote(near) + "?")};
}

bool Policy::lacks_hash_key() const noexcept {
  return parts_.hash_key.empty() &&
         std::any_of(parts_.limits.begin(), parts_.limits.end(), [](const NamedLimit& limit) { return limit.hashed; });
}

Result<std::string> Policy::bucket_id(std::string_view limit, std::string_view id) const {
  const NamedLimit* const found = find(limit);
  if (found == nullptr) return unknown_limit(limit);
  return weir::bucket_id(*found, id, parts_.ipv6_prefix, parts_.hash_key);
}

std::string_view Policy::hash_mark(const NamedLimit& limit) const noexcept {
  return limit.hashed ? std::string_view(hash_mark_) : std::string_view();
}

bool Policy::is_orphaned(std::string_view limit, std::string_view id, std::string_view mark) const noexcept {
  const NamedLimit* const found = find(limit);
  if (found == nullptr) return false;
  if (mark.empty()) return found->hashed && !is_hash(id);
  return mark != hash_mark(*found);
}

std::string Policy::full_handle(std::string_view apikey) const {
  std::string part;
  append_part(part, apikey);
  return full_handle_of(parts_.hash_key, part);
}

std::string Policy::shown_apikey(std::string_view apikey) const {
  return shortened(is_full_handle(apikey) ? std::string(apikey) : full_handle(apikey));
}

std::string Policy::shown_id(const NamedLimit* limit, std::string_view id) const {
  Label label;
  label.id = id;
  label.secret = limit == nullptr || limit->holds_api_key(id);
  if (limit != nullptr) label.limiter_type = limit->limiter_type;
  return weir::shown_id(label, parts_.hash_key);
}

const Adjustment* Policy::adjustment_of(const NamedLimit& limit, std::string_view bucket_id, const Known& known) const {
  const Adjustments& all = known.adjustments();
  const Adjustment* const by_id = all.find({limit.name, bucket_id});
  if (!all.has_handles() || !limit.is_keyed_by_api_key()) return by_id;
  const Adjustment* const by_handle = all.find({limit.name, full_handle_of(parts_.hash_key, bucket_id)});
  if (by_id == nullptr || by_handle == nullptr) return by_id == nullptr ? by_handle : by_id;
  return by_handle->expires > by_id->expires ? by_handle : by_id;
}

// Tries sources in ascending precedence; each may replace what was chosen before it. The numbers of an override and of
// a service are the same for every tier, and so is their bucket.
Policy::Numbers Policy::choose(const NamedLimit& limit, const Override* found, const ServiceAnswer* answer,
                               const Adjustment* adjustment, const Tier* tier, Wall wall) {
  Numbers chosen;
  chosen.bucket = limit.numbers;
  if (limit.quota) chosen.quota = &*limit.quota;
  chosen.changed = last_change(limit.schedule, wall);
  if (const ScheduleEntry* entry = find_entry(limit.schedule, wall); entry != nullptr) {
    chosen.bucket = entry->numbers;
    chosen.source = Source::schedule;
  }
  if (found != nullptr && found->kind == Override::Kind::tier) tier = &limit.tiers[found->tier];
  if (tier != nullptr) {
    chosen.bucket = tier->numbers;
    chosen.quota = tier->quota ? &*tier->quota : nullptr;
    chosen.source = chosen.quota_source = Source::tier;
    chosen.tier = tier;
  }
  if (found != nullptr && found->has_limit) {
    chosen.bucket = found->limit;
    chosen.source = Source::override;
    chosen.tier = nullptr;
  }
  if (found != nullptr && found->has_quota) {
    chosen.quota = &found->quota;
    chosen.quota_source = Source::override;
    if (!chosen.bucket) chosen.source = Source::override;
  }
  if (answer != nullptr) {
    chosen.bucket = answer->numbers;
    chosen.source = Source::external;
    chosen.tier = nullptr;
  }
  if (!chosen.bucket && chosen.quota == nullptr) {
    chosen.standing = limit.blocked && answer == nullptr ? Standing::blocked : Standing::unlimited;
  }
  if (found != nullptr && (found->kind == Override::Kind::blocked || found->kind == Override::Kind::unlimited)) {
    chosen.standing = found->kind == Override::Kind::blocked ? Standing::blocked : Standing::unlimited;
    chosen.source = Source::override;
  }
  if (adjustment != nullptr && !adjustment->live(wall)) {
    chosen.changed = std::max(chosen.changed, adjustment->expires);
  } else if (adjustment != nullptr) {
    // The adjustment fit when it was made. If a reload has changed the limit so that it no longer fits, ignore it.
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

Policy::InForce Policy::in_force(const NamedLimit& limit, std::string_view bucket_id, const Known& known, Wall wall,
                                 std::string_view tier, const ServiceAnswer* answer) const {
  const Override* found = nullptr;
  // Overrides of hashed limits are found by the plain id, which a hash does not reveal.
  if (!limit.hashed) {
    if (const Result<Identity> identity = identify(limit, bucket_id, parts_.ipv6_prefix)) found = identity->found;
  }
  const Adjustment* const adjustment = adjustment_of(limit, bucket_id, known);
  const Numbers numbers = choose(limit, found, answer, adjustment, limit.find_tier(tier), wall);
  return {numbers.bucket,
          numbers.source,
          numbers.standing,
          numbers.changed,
          numbers.tier == nullptr ? std::string_view{} : std::string_view(numbers.tier->name),
          answer == nullptr ? Time{} : answer->since};
}

Time changed_since(Wall changed, Time published, const Known& known, Now now) noexcept {
  const Time since = std::max(published, known.adjusted());
  return changed == Wall::min() ? since : std::max(since, now.time - (now.wall - changed));
}

}  // namespace weir
