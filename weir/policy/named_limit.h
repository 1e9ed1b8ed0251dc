// One limit of a policy: its name, its numbers, and what may change them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/limit.h"
#include "weir/identify/id_format.h"
#include "weir/identify/key_source.h"
#include "weir/identify/prefix_map.h"
#include "weir/policy/block_rule.h"
#include "weir/policy/limits_service.h"
#include "weir/policy/override_table.h"
#include "weir/policy/schedule.h"

namespace weir {

// The prefix that turns a service's tenant_key into an id: "t:acme". No caller's id of a limit with a service starts
// with it.
inline constexpr std::string_view kTenantPrefix = "t:";

// A limit's or a route's `mode`. Of two, the laxer wins.
enum class Enforcement : unsigned char {
  enforce,
  shadow,  // decided, charged and counted, never denies
  off,
};

// What happens to a request without the key.
enum class Missing : unsigned char {
  skip,    // this limit does not apply
  reject,  // the request is refused
};

// How ids of a limit are parsed.
enum class IdKind : unsigned char {
  shaped,   // by an IdShape
  address,  // addresses; IPv6 counted per prefix of the policy; overrides may be CIDRs
  single,   // each address on its own, overrides may be CIDRs: `key: ip` with `id: ipAddress`
};

// Other numbers for clients of one tier. Values that it does not set are the limit's.
struct Tier {
  std::string name;
  std::optional<Limit> numbers;    // absent: unlimited, or there is only a quota
  std::optional<QuotaText> quota;  // absent: none
  bool unlimited = false;
};

struct NamedLimit {
  std::string name;
  std::optional<std::uint32_t> number;  // bucket keys begin with it instead of the name
  std::vector<std::string> key;         // key sources as written; empty: callers name the limit and give the id
  std::vector<KeySource> sources;       // the same, parsed
  std::string limiter_type;             // the same for metrics, without names: "ip", "header+path"
  IdKind id_kind = IdKind::shaped;
  IdShape id{IdFormat::text};
  std::optional<Limit> numbers;  // absent: unlimited, or only ids with an override are limited
  bool unlimited = false;        // `average: 0`
  bool blocked = false;          // always denies
  bool alternative = false;      // denies only if all alternatives of the query do (Charge::alternative)
  std::optional<QuotaText> quota;
  Zone zone;  // of quotas
  Schedule schedule;
  std::vector<Tier> tiers;        // in the order written; at most bounds::tiers_max
  std::string tier_source;        // where a request's tier comes from, as written; empty: callers and overrides name it
  std::optional<KeySource> tier;  // the same, parsed
  Enforcement mode = Enforcement::enforce;
  bool hashed = false;
  bool per_route = false;
  Missing missing = Missing::skip;
  std::optional<FailurePolicy> failure_policy;  // absent: the top level's
  std::optional<int> failure_code;
  std::optional<Lease> lease;
  std::shared_ptr<const LimitsService> service;  // decides its numbers; null: none
  BlockRule block;                               // counts this limit's denials only
  Duration idle_min{};                           // idle buckets are kept at least this long
  OverrideTable overrides;
  PrefixMap<std::uint32_t> override_prefixes;  // indexes into overrides; for ids that are addresses

  // True if its ids are, or contain, API keys in clear text.
  bool holds_api_key() const {
    return !hashed && std::any_of(key.begin(), key.end(), [](const std::string& part) { return part == "apikey"; });
  }

  // True if this id is, or contains, an API key in clear text. A tenant's name is none.
  bool holds_api_key(std::string_view bucket_id) const {
    return holds_api_key() && !(service != nullptr && bucket_id.starts_with(kTenantPrefix));
  }

  // True if its ids are just API keys in clear text.
  bool is_keyed_by_api_key() const { return !hashed && key.size() == 1 && key.front() == "apikey"; }

  // True if its ids must not be shown: they are stored as hashes, or they are API keys.
  bool hides_ids() const { return hashed || holds_api_key(); }

  // Returns null if no tier has that name.
  const Tier* find_tier(std::string_view tier_name) const noexcept {
    const auto found = std::ranges::find(tiers, tier_name, &Tier::name);
    return found == tiers.end() ? nullptr : &*found;
  }

  // The start of its bucket keys, before the ':'.
  std::string prefix() const { return number ? std::to_string(*number) : name; }
};

// "enforce", "shadow", "off".
std::string_view print(Enforcement mode) noexcept;

}  // namespace weir
