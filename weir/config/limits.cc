#include "weir/config/limits.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/fields.h"
#include "weir/config/numbers.h"
#include "weir/config/values.h"

namespace weir::config {
namespace {

// Reads one entry of `limits`.
class LimitReader {
 public:
  LimitReader(const Document& document, NodeId entry, Complaints& complaints)
      : document_(document), entry_(entry), complaints_(complaints) {}

  void read(NamedLimit& limit) {
    read_numbers_and_quota(limit);
    read_schedule(limit);
    read_tiers(limit);
    read_key(limit);
    limit.mode = choice<Enforcement>("mode");
    limit.missing = choice<Missing>("missing");
    limit.hashed = text("hashed") == "true";
    limit.per_route = text("per_route") == "true";
    if (has("failure_policy")) limit.failure_policy = choice<FailurePolicy>("failure_policy");
    if (has("failure_code")) limit.failure_code = static_cast<int>(*parse_integer(text("failure_code")));
    read_lease(limit);
    read_block(limit);
  }

  const Written& written() const noexcept { return written_; }

 private:
  NodeId find(NodeId section, std::string_view key) const { return document_.usable(section, key); }
  NodeId find(std::string_view key) const { return find(entry_, key); }
  bool has(std::string_view key) const { return find(key) != kNoNode; }
  std::string_view text(std::string_view key) const { return document_.text(entry_, key); }

  // Enumerators have the order of the choices, and the first is the default.
  template <class E>
  E choice(std::string_view key) const {
    E chosen{};
    if (has(key)) assign(Given{*find_field(limit_fields(), key), std::string(text(key)), {}}, chosen);
    return chosen;
  }

  std::optional<Zone> load_zone(NodeId at) {
    if (at == kNoNode) return Zone{};
    Result<Zone> zone = Zone::load(document_.value(at));
    if (zone) return *zone;
    complaints_.add(at, zone.error().detail);
    return std::nullopt;
  }

  void read_numbers_and_quota(NamedLimit& limit) {
    written_ = read_numbers(document_, entry_, complaints_);
    limit.numbers = make_limit(document_, written_, complaints_);
    limit.unlimited = written_.unlimited;
    limit.idle_min = written_.idle;
    if (has("quota")) limit.quota = *parse_quota(text("quota"));
    bool quotas = document_.find(entry_, "quota") != kNoNode;
    const NodeId tiers = document_.find(entry_, "tiers");
    for (const NodeId tier : document_.children(tiers)) quotas |= document_.find(tier, "quota") != kNoNode;
    if (has("zone") && !quotas) {
      complaints_.add(find("zone"), "zone needs a quota; an entry of schedule has a zone of its own");
    }
    if (const std::optional<Zone> zone = load_zone(find("zone"))) limit.zone = *zone;
  }

  void read_schedule(NamedLimit& limit) {
    const NodeId schedule = document_.find(entry_, "schedule");
    if (!document_.is(schedule, NodeKind::sequence)) return;
    for (const NodeId item : document_.children(schedule)) {
      if (document_.node(item).kind != NodeKind::map) continue;
      const Written own = read_numbers(document_, item, complaints_);
      if (!own.any() && !own.has_refused) {
        complaints_.add(item, "an entry of schedule must change count, period, burst or rate");
      }
      const NodeId days = find(item, "days");
      const NodeId hours = find(item, "hours");
      ScheduleEntry entry;
      if (days != kNoNode) entry.days = *parse_days(document_.value(days));
      if (hours != kNoNode) entry.hours = *parse_hours(document_.value(hours));
      const std::optional<Zone> zone = load_zone(find(item, "zone"));
      // If a number of this entry was refused, do not inherit: the limit's numbers would cause misleading messages.
      const Written all = own.has_refused || !own.any() ? own : inherit(written_, own, item);
      const std::optional<Limit> numbers = make_limit(document_, all, complaints_);
      if (!zone || !numbers) continue;
      entry.zone = *zone;
      entry.numbers = *numbers;
      limit.schedule.push_back(entry);
    }
  }

  void read_tiers(NamedLimit& limit) {
    const NodeId tiers = document_.find(entry_, "tiers");
    if (const NodeId source = find("tier"); source != kNoNode) {
      limit.tier_source = document_.value(source);
      limit.tier = KeySource::of(limit.tier_source);
      const std::string kind = limit.tier_source.substr(0, limit.tier_source.find(':'));
      if (kind != "header" && kind != "descriptor" && kind != "jwt") {
        complaints_.add(source,
                        "tier " + quote(limit.tier_source) + " must be header:NAME, descriptor:KEY or jwt:CLAIM");
      } else if (tiers == kNoNode) {
        complaints_.add(source, "tier needs tiers to choose from");
      }
    }
    if (!document_.is(tiers, NodeKind::map)) return;
    for (const NodeId entry : document_.children(tiers)) {
      if (limit.tiers.size() == bounds::tiers_max) {
        return complaints_.add_at_key(entry, "tiers: at most " + std::to_string(bounds::tiers_max) + " are possible");
      }
      limit.tiers.push_back(read_tier(limit, entry));
    }
  }

  Tier read_tier(const NamedLimit& limit, NodeId entry) {
    Tier tier;
    tier.name = document_.key(entry);
    const std::string label = "tier " + quote(tier.name);
    const auto refuse = [&](const std::string& rule) { complaints_.add_at_key(entry, label + rule); };
    if (!is_name(tier.name)) refuse(" must be 1 to 63 of the characters A-Z a-z 0-9 . _ -");
    const Written own = read_numbers(document_, entry, complaints_);
    const NodeId unlimited = find(entry, "unlimited");
    const NodeId quota = find(entry, "quota");
    tier.unlimited = own.unlimited || (unlimited != kNoNode && document_.value(unlimited) == "true");
    const bool numbers = (own.any() && !own.unlimited) || quota != kNoNode;
    if (tier.unlimited && numbers) refuse(" must have only one of numbers and unlimited: true");
    if (!tier.unlimited && !numbers && !document_.node(entry).refused) {
      refuse(" must have numbers, a quota, or unlimited: true");
    }
    if (tier.unlimited) return tier;
    if (!own.has_refused) tier.numbers = make_limit(document_, inherit(written_, own, entry), complaints_);
    tier.quota = quota == kNoNode ? limit.quota : *parse_quota(document_.value(quota));
    // All tiers share one counter, so they need the same window.
    const QuotaText* first = limit.quota ? &*limit.quota : nullptr;
    for (const Tier& other : limit.tiers) {
      if (first == nullptr && other.quota) first = &*other.quota;
    }
    if (tier.quota && first != nullptr && first->calendar != tier.quota->calendar) {
      complaints_.add(quota, "quota " + quote(document_.value(quota)) + " of " + label +
                                 " must be in the same window as " + print_quota(*first) +
                                 ": all tiers share its counter");
    }
    return tier;
  }

  void read_key(NamedLimit& limit) {
    const NodeId key = document_.find(entry_, "key");
    if (key == kNoNode) return;
    const NodeKind kind = document_.node(key).kind;
    std::size_t size = kind == NodeKind::scalar ? 1 : 0;
    bool global = false;
    for (const NodeId part : document_.children(kind == NodeKind::sequence ? key : kNoNode)) {
      ++size;
      global = global || document_.value(part) == "global";
    }
    if (global && size > 1) complaints_.add(key, "key global must be the only source");
    if (document_.node(key).refused) return;
    if (size == 0) complaints_.add(key, "key must name at least one source");
    if (kind == NodeKind::scalar) limit.key.emplace_back(document_.value(key));
    for (const NodeId part : document_.children(key)) limit.key.emplace_back(document_.value(part));
    for (const std::string& source : limit.key) {
      limit.sources.push_back(KeySource::of(source));
      limit.limiter_type += (limit.limiter_type.empty() ? "" : "+") + source.substr(0, source.find(':'));
    }
  }

  void read_lease(NamedLimit& limit) {
    const NodeId lease = find("lease");
    if (!document_.is(lease, NodeKind::map)) return;
    const Count tokens = *parse_integer(document_.value(document_.find(lease, "tokens")));
    const Count servers = *parse_integer(document_.value(document_.find(lease, "servers")));
    limit.lease = Lease{tokens, servers};
    const auto check = [&](const Limit& numbers, const std::string& whose) {
      if (tokens <= (numbers.burst() - 1) / servers) return;
      complaints_.add(lease, "lease of " + std::to_string(tokens) + " tokens for " + std::to_string(servers) +
                                 " servers must be less than the burst of " + std::to_string(numbers.burst()) + whose);
    };
    const bool tier_quota = std::ranges::any_of(limit.tiers, [](const Tier& tier) { return bool(tier.quota); });
    if (limit.numbers && (limit.quota || tier_quota)) {
      complaints_.add(lease, "limit " + quote(limit.name) + " has lease and quota" + (limit.quota ? "" : " of a tier") +
                                 "; a limit with a quota cannot be leased: remove one of them");
    } else if (limit.numbers) {
      check(*limit.numbers, "");
    } else if (!written_.any() && !written_.has_refused) {
      complaints_.add(lease, "lease needs a limit with count and period");
    }
    for (const Tier& tier : limit.tiers) {
      if (tier.numbers) check(*tier.numbers, " of tier " + quote(tier.name));
    }
  }

  void read_block(NamedLimit& limit) {
    const NodeId block = find("block");
    if (!document_.is(block, NodeKind::map)) return;
    if (limit.key == std::vector<std::string>{"global"}) {
      complaints_.add(block, "block is not possible on a limit whose key is global: it would deny everyone");
    }
    const auto time = [&](std::string_view key, Duration fallback) {
      const NodeId at = find(block, key);
      return at == kNoNode ? fallback : *parse_duration(document_.value(at));
    };
    limit.block.after = *parse_integer(document_.value(document_.find(block, "after")));
    limit.block.within = time("within", std::chrono::minutes{1});
    limit.block.lasts = time("for", std::chrono::minutes{10});
  }

  const Document& document_;
  NodeId entry_;
  Complaints& complaints_;
  Written written_;
};

// Returns the limit with that name; creates it if necessary.
NamedLimit& name_limit(Limits& limits, const Document& document, NodeId entry) {
  const std::string name(document.key(entry));
  const auto [found, fresh] = limits.by_name.emplace(name, limits.made.size());
  if (fresh) {
    limits.made.emplace_back().name = name;
    limits.nodes.push_back(entry);
    limits.written.emplace_back();
  }
  return limits.made[found->second];
}

void check_name(const Document& document, NodeId entry, Complaints& complaints) {
  if (is_name(document.key(entry))) return;
  complaints.add_at_key(
      entry, "limit name " + quote(document.key(entry)) + " must be 1 to 63 of the characters A-Z a-z 0-9 . _ -");
}

// Where each limit first got its number and its id format, to report a second one that differs.
struct Identities {
  std::map<std::string, NodeId, std::less<>> numbers;
  std::map<std::string, NodeId, std::less<>> ids;
};

// Reads `number` and `id` of an entry of `limits` or `names`. If both sections set one, they must agree.
void read_identity(const Document& document, NodeId entry, NamedLimit& limit, Identities& seen,
                   Complaints& complaints) {
  for (const bool is_number : {true, false}) {
    const NodeId at = document.find(entry, is_number ? "number" : "id");
    if (at == kNoNode || document.node(at).refused) continue;
    auto& places = is_number ? seen.numbers : seen.ids;
    const auto [first, fresh] = places.emplace(limit.name, at);
    const auto same = [&](std::string_view a, std::string_view b) {
      return is_number ? *parse_integer(a) == *parse_integer(b) : a == b;
    };
    if (!fresh && !same(document.value(first->second), document.value(at))) {
      complaints.add(at, std::string(document.key(at)) + " of " + quote(limit.name) + " is " +
                             std::string(document.value(at)) + " here and " +
                             std::string(document.value(first->second)) + " at " +
                             document.where(document.mark(first->second)));
      continue;
    }
    if (is_number) {
      limit.number = static_cast<std::uint32_t>(*parse_integer(document.value(at)));
    } else {
      limit.id = *IdShape::parse(document.value(at));
    }
  }
}

// Two limits must never write the same bucket keys.
void check_numbers(const Limits& limits, const Identities& seen, Complaints& complaints) {
  std::map<std::uint32_t, std::string_view> holders;
  for (const NamedLimit& limit : limits.made) {
    if (!limit.number) continue;
    const NodeId at = seen.numbers.find(limit.name)->second;
    const auto [holder, fresh] = holders.emplace(*limit.number, limit.name);
    if (!fresh) {
      complaints.add(at, "number " + std::to_string(*limit.number) + " of " + quote(limit.name) +
                             " is also the number of " + quote(holder->second));
    }
    const std::string spelled = std::to_string(*limit.number);
    if (spelled != limit.name && limits.by_name.contains(spelled)) {
      complaints.add(at, "number " + spelled + " of " + quote(limit.name) +
                             " is also the name of a limit: their bucket keys would be the same");
    }
  }
}

// The key and the id format together determine how ids are parsed.
void set_id_kind(const Document& document, NamedLimit& limit, const Identities& seen, Complaints& complaints) {
  const auto id = seen.ids.find(limit.name);
  const bool given = id != seen.ids.end() && limit.id != IdShape(IdFormat::text);
  if (given && limit.key == std::vector<std::string>{"global"}) {
    return complaints.add(id->second, "a limit whose key is global has one id and no format for it, not " +
                                          quote(document.value(id->second)));
  }
  // With fewer parts no request would have a valid id; with more, different values could join to the same id.
  if (given && limit.key.size() > 1 && limit.id.parts().size() != limit.key.size()) {
    return complaints.add(id->second, "id " + quote(document.value(id->second)) +
                                          " must have as many parts as the key: " + std::to_string(limit.key.size()));
  }
  if (limit.key != std::vector<std::string>{"ip"}) return;
  if (id == seen.ids.end()) {
    limit.id_kind = IdKind::address;
  } else if (limit.id == IdShape(IdFormat::ip_address)) {
    limit.id_kind = IdKind::single;
  } else {
    complaints.add(id->second,
                   "id of a limit whose key is ip must be ipAddress, not " + quote(document.value(id->second)));
  }
}

}  // namespace

Document::Children entries_of(const Document& document, NodeId root, std::string_view name) {
  const NodeId map = document.find(root, name);
  return document.children(!document.is(map, NodeKind::map) ? kNoNode : map);
}

Limits read_limits(const Document& document, NodeId root, Complaints& complaints, std::vector<std::string>& warnings) {
  Limits limits;
  Identities seen;
  for (const std::string_view name : {"limits", "names"}) {
    const NodeId section = document.find(root, name);
    if (section == kNoNode || document.node(section).kind == NodeKind::map) continue;
    limits.complete = limits.complete && !document.node(section).refused;
  }
  for (const NodeId entry : entries_of(document, root, "limits")) {
    check_name(document, entry, complaints);
    NamedLimit& limit = name_limit(limits, document, entry);
    if (document.node(entry).kind != NodeKind::map) continue;
    const std::size_t index = limits.by_name[limit.name];
    if (limits.nodes[index] != entry) {
      // A duplicate, already reported: read it only to report its other problems.
      NamedLimit second;
      LimitReader(document, entry, complaints).read(second);
      continue;
    }
    LimitReader reader(document, entry, complaints);
    reader.read(limit);
    limits.written[index] = reader.written();
    read_identity(document, entry, limit, seen, complaints);
    const bool silent = !limit.numbers && !limit.unlimited && !limit.quota && limit.schedule.empty();
    if (silent && !limit.key.empty() && !document.node(entry).refused) {
      warnings.push_back(document.where(document.key_mark(entry)) + ": limit " + quote(limit.name) +
                         " has no numbers: only ids that have an override are limited");
    }
  }
  for (const NodeId entry : entries_of(document, root, "names")) {
    check_name(document, entry, complaints);
    NamedLimit& limit = name_limit(limits, document, entry);
    read_identity(document, entry, limit, seen, complaints);
  }
  for (NamedLimit& limit : limits.made) set_id_kind(document, limit, seen, complaints);
  check_numbers(limits, seen, complaints);
  return limits;
}

}  // namespace weir::config
