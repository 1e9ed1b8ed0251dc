#include <array>
#include <optional>
#include <utility>

#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/limits.h"
#include "weir/config/numbers.h"
#include "weir/config/values.h"
#include "weir/identify/ip.h"

namespace weir::config {
namespace {

// Adds the entries of `overrides` to their limits.
class OverrideReader {
 public:
  OverrideReader(const Document& document, int ipv6_prefix, Limits& limits, Complaints& complaints)
      : document_(document),
        ipv6_prefix_(ipv6_prefix),
        limits_(limits),
        complaints_(complaints),
        nodes_(limits.made.size()),
        prefixes_(limits.made.size()) {}

  // Call it before the first read(). Reserves space, so that the tables are not copied while a million entries are
  // added.
  void make_room(Document::Children entries) {
    struct Sum {
      std::size_t ids = 0;
      std::size_t bytes = 0;
    };
    std::vector<Sum> sums(limits_.made.size());
    for (const NodeId entry : entries) {
      const auto [name, id] = name_and_id(document_.key(entry));
      const std::optional<std::size_t> limit = limit_named(name);
      if (!limit) continue;
      ++sums[*limit].ids;
      sums[*limit].bytes += id.size();
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (sums[i].ids == 0) continue;
      limits_.made[i].overrides.reserve(sums[i].ids, sums[i].bytes);
      nodes_[i].reserve(sums[i].ids);
    }
  }

  // Call it a few entries before read(entry). Prefetches by the id as written, which is nearly always its canonical
  // form.
  void prefetch(NodeId entry) const {
    const auto [name, id] = name_and_id(document_.key(entry));
    if (const auto limit = limit_named(name)) limits_.made[*limit].overrides.prefetch(id);
  }

  void read(NodeId entry) {
    const std::string_view key = document_.key(entry);
    const auto [name, id] = name_and_id(key);
    const std::optional<std::size_t> limit = limit_named(name);
    const std::optional<Override> value = read_value(entry, limit);
    if (name.size() == key.size()) return refuse(entry, "override " + quote(key) + " must read Name:id");
    if (!limit) return refuse_name(entry, name);
    // If the value is bad, check the id anyway, with a placeholder value.
    Override blocked;
    blocked.kind = Override::Kind::blocked;
    add(entry, *limit, id, value.value_or(blocked));
  }

  void finish() {
    for (std::size_t i = 0; i < prefixes_.size(); ++i) {
      auto map = PrefixMap<std::uint32_t>::build(std::move(prefixes_[i]));
      if (map) {
        limits_.made[i].override_prefixes = std::move(*map);
      } else {
        complaints_.add_at_key(limits_.nodes[i], "overrides: " + map.error().detail);
      }
    }
  }

 private:
  struct NameAndId {
    std::string_view name;
    std::string_view id;
  };
  // A key without a colon is all name.
  static NameAndId name_and_id(std::string_view key) {
    const std::size_t colon = key.find(':');
    if (colon == key.npos) return {key, {}};
    return {key.substr(0, colon), key.substr(colon + 1)};
  }

  void refuse(NodeId entry, std::string sentence) { complaints_.add_at_key(entry, std::move(sentence)); }

  void refuse_name(NodeId entry, std::string_view name) {
    if (!limits_.complete) return;
    std::vector<std::string_view> names;
    // Suggestions compare every bad name with every limit, which is quadratic. Make none if there are very many limits.
    if (limits_.made.size() <= 1000) {
      for (const NamedLimit& limit : limits_.made) names.push_back(limit.name);
    }
    refuse(entry, "override " + quote(document_.key(entry)) + " is for an unknown limit " + quote(name) +
                      did_you_mean(names, name));
  }

  std::optional<std::size_t> limit_named(std::string_view name) const {
    const auto found = limits_.by_name.find(name);
    return found == limits_.by_name.end() ? std::nullopt : std::optional(found->second);
  }

  bool is_true(NodeId entry, std::string_view key) const {
    const NodeId id = document_.find(entry, key);
    return id != kNoNode && document_.value(id) == "true";
  }

  // If the limit is unknown, which the caller reports, checks only the value itself.
  std::optional<Override> read_value(NodeId entry, std::optional<std::size_t> of) {
    if (document_.node(entry).kind == NodeKind::null) {
      refuse(entry, "override " + quote(document_.key(entry)) + " has no value");
      return std::nullopt;
    }
    if (document_.node(entry).kind != NodeKind::map) return std::nullopt;
    const Written written = read_numbers(document_, entry, complaints_);
    std::optional<Limit> limit;
    if (of && written.any()) limit = make_limit(document_, inherit(limits_.written[*of], written, entry), complaints_);
    Override value;
    if (limit) value.limit = *limit;
    value.has_limit = limit.has_value();
    const NodeId quota = document_.find(entry, "quota");
    value.has_quota = quota != kNoNode && !document_.node(quota).refused;
    if (value.has_quota) value.quota = *parse_quota(document_.value(quota));
    if (value.has_quota && of && limits_.made[*of].lease) {
      complaints_.add(document_.mark(quota),
                      "override " + quote(document_.key(entry)) + " has a quota, and limit " +
                          quote(limits_.made[*of].name) +
                          " has a lease; a limit with a quota cannot be leased: remove one of them");
    }
    const bool blocked = is_true(entry, "blocked");
    const bool unlimited = is_true(entry, "unlimited") || written.unlimited;
    if (blocked) value.kind = Override::Kind::blocked;
    if (unlimited) value.kind = Override::Kind::unlimited;
    const bool numbers = (written.any() && !written.unlimited) || value.has_quota;
    const NodeId tier = document_.find(entry, "tier");
    if (tier != kNoNode && of && !document_.node(tier).refused) read_tier(entry, tier, limits_.made[*of], value);
    const int given = int{numbers} + int{blocked} + int{unlimited} + int{tier != kNoNode};
    if (given == 1) {
      // Numbers without a quota inherit the limit's.
      const bool inherits = value.has_limit && !value.has_quota && quota == kNoNode && limits_.made[*of].quota;
      if (inherits) value.quota = *limits_.made[*of].quota;
      value.has_quota |= inherits;
      return value;
    }
    // If one of them was refused, it may not really be missing.
    constexpr std::array<std::string_view, 4> others{"quota", "unlimited", "blocked", "tier"};
    if (given == 0 && (written.has_refused || has_refused_word(document_, entry, others))) return std::nullopt;
    refuse(entry, "override " + quote(document_.key(entry)) +
                      (given == 0 ? " must have numbers, or a tier, or unlimited: true, or blocked: true"
                                  : " must have only one of numbers, a tier, unlimited: true and blocked: true"));
    return std::nullopt;
  }

  void read_tier(NodeId entry, NodeId at, const NamedLimit& limit, Override& value) {
    const std::string_view name = document_.value(at);
    const Tier* const found = limit.find_tier(name);
    if (found != nullptr) {
      value.kind = Override::Kind::tier;
      value.tier = static_cast<std::uint8_t>(found - limit.tiers.data());
      return;
    }
    if (document_.node(limits_.nodes[limits_.by_name.find(limit.name)->second]).refused) return;
    std::vector<std::string_view> names;
    for (const Tier& tier : limit.tiers) names.push_back(tier.name);
    complaints_.add(at, "override " + quote(document_.key(entry)) + ": limit " + quote(limit.name) + " has no tier " +
                            quote(name) + did_you_mean(names, name));
  }

  void add(NodeId entry, std::size_t index, std::string_view id, const Override& value) {
    NamedLimit& limit = limits_.made[index];
    if (limit.id_kind != IdKind::shaped) return add_prefix(entry, index, id, value);
    if (limit.key == std::vector<std::string>{"global"} && id != "global") {
      return refuse(entry, "override " + quote(document_.key(entry)) + " matches no one: a limit whose key is global " +
                               "counts everyone as " + quote(limit.name + ":global"));
    }
    const Result<std::string> canonical = limit.id.canonical(id);
    if (!canonical) return refuse_id(entry, limit, canonical.error());
    put(entry, index, *canonical, value);
  }

  void add_prefix(NodeId entry, std::size_t index, std::string_view id, const Override& value) {
    NamedLimit& limit = limits_.made[index];
    const Result<IpPrefix> prefix = IpPrefix::parse(id);
    if (!prefix) return refuse_id(entry, limit, prefix.error());
    const IpAddress& address = prefix->address();
    // Addresses of one IPv6 prefix share a bucket, which cannot have two sets of numbers.
    const bool shares = limit.id_kind == IdKind::address && !address.is_v4() && prefix->bits() > ipv6_prefix_;
    const bool counted = value.kind == Override::Kind::numbers || value.kind == Override::Kind::tier;
    if (shares && counted) {
      return refuse(entry, "override " + quote(document_.key(entry)) + " has numbers for less than a /" +
                               std::to_string(ipv6_prefix_) +
                               ", by which IPv6 clients are counted (access.ipv6_prefix); write " +
                               IpPrefix::of(address, ipv6_prefix_).print());
    }
    const std::string canonical = prefix->bits() == address.width() ? address.print() : prefix->print();
    if (const std::optional<std::uint32_t> made = put(entry, index, canonical, value)) {
      prefixes_[index].emplace_back(*prefix, *made);
    }
  }

  std::optional<std::uint32_t> put(NodeId entry, std::size_t index, std::string_view id, const Override& value) {
    const Mark mark = document_.key_mark(entry);
    const OverrideTable::Added added = limits_.made[index].overrides.add(id, value, {mark.line, mark.column});
    if (added.fresh) {
      nodes_[index].push_back(entry);
      return added.index;
    }
    const NodeId first = nodes_[index][added.index];
    // The checker has already complained about a key written twice.
    if (document_.key(first) == document_.key(entry)) return std::nullopt;
    refuse(entry, "override " + quote(document_.key(entry)) + " is for the same id as " + quote(document_.key(first)) +
                      " at " + document_.where(document_.key_mark(first)));
    return std::nullopt;
  }

  void refuse_id(NodeId entry, const NamedLimit& limit, const Error& error) {
    refuse(entry, "override of " + quote(limit.name) + ": " + error.detail);
  }

  const Document& document_;
  int ipv6_prefix_;
  Limits& limits_;
  Complaints& complaints_;
  std::vector<std::vector<NodeId>> nodes_;  // by limit and index of the override
  std::vector<std::vector<std::pair<IpPrefix, std::uint32_t>>> prefixes_;
};

}  // namespace

void read_overrides(const Document& document, NodeId root, int ipv6_prefix, Limits& limits, Complaints& complaints) {
  OverrideReader reader(document, ipv6_prefix, limits, complaints);
  const Document::Children entries = entries_of(document, root, "overrides");
  reader.make_room(entries);
  constexpr int kAhead = 8;
  auto soon = entries.begin();
  for (int i = 0; i < kAhead && soon != entries.end(); ++i) ++soon;
  for (const NodeId entry : entries) {
    if (soon != entries.end()) {
      reader.prefetch(*soon);
      ++soon;
    }
    reader.read(entry);
  }
  reader.finish();
}

}  // namespace weir::config
