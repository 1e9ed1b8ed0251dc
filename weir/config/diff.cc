#include "weir/config/diff.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "weir/base/text.h"
#include "weir/config/describe.h"
#include "weir/config/fields.h"

namespace weir::config {
namespace {

using Kind = Change::Kind;

// Describes a limit without its overrides. Two limits are equal if these texts are.
std::string words(const NamedLimit& limit) {
  const auto row = describe(limit);
  std::string out;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += (out.empty() ? "" : "; ") + std::string(name) + value;
  };
  add("", row.numbers);
  add("quota ", row.quota);
  add("schedule ", row.schedule);
  add("tiers ", row.tiers);
  add("key ", row.key);
  add("id ", row.id);
  add("number ", row.number);
  if (limit.mode != Enforcement::enforce) add("mode ", row.mode);
  if (limit.hashed) add("", "hashed");
  if (limit.per_route) add("", "per_route");
  if (limit.missing == Missing::reject) add("missing ", "reject");
  if (limit.failure_policy) add("failure_policy ", std::string(print(*limit.failure_policy)));
  if (limit.failure_code) add("failure_code ", std::to_string(*limit.failure_code));
  if (limit.lease) {
    add("lease ", std::to_string(limit.lease->tokens) + " for " + std::to_string(limit.lease->servers) + " servers");
  }
  if (limit.block.any()) {
    add("block ", "after " + std::to_string(limit.block.after) + " within " + print_duration(limit.block.within) +
                      " for " + print_duration(limit.block.lasts));
  }
  if (limit.idle_min != Duration::zero()) add("idle ", std::to_string(limit.idle_min / std::chrono::seconds{1}) + "s");
  return out;
}

// Something that is compared by its description, with a key that is unique within its kind.
struct Compared {
  std::string key;
  std::string what;
  std::string words;
};

// In the order of `before`, then of `after`.
void diff_compared(const std::vector<Compared>& before, const std::vector<Compared>& after,
                   std::vector<Change>& changes) {
  const auto index = [](const std::vector<Compared>& all) {
    std::map<std::string_view, const Compared*> by_key;
    for (const Compared& one : all) by_key.emplace(one.key, &one);
    return by_key;
  };
  const auto old_ones = index(before);
  const auto new_ones = index(after);
  for (const Compared& one : before) {
    const auto now = new_ones.find(one.key);
    if (now == new_ones.end()) {
      changes.push_back({Kind::removed, one.what, "", one.words, "", true});
    } else if (now->second->words != one.words) {
      changes.push_back({Kind::changed, one.what, "", one.words, now->second->words, true});
    }
  }
  for (const Compared& one : after) {
    if (!old_ones.contains(one.key)) changes.push_back({Kind::added, one.what, "", "", one.words, true});
  }
}

std::vector<Compared> limits_of(const Policy& policy) {
  std::vector<Compared> out;
  for (const NamedLimit& limit : policy.limits()) out.push_back({limit.name, "limit " + limit.name, words(limit)});
  return out;
}

// Compares the overrides of one limit. `before` or `after` may be null: the limit does not exist there.
void diff_overrides(const NamedLimit* before, const NamedLimit* after, std::vector<Change>& changes) {
  const OverrideTable none;
  const OverrideTable& old_ones = before == nullptr ? none : before->overrides;
  const OverrideTable& new_ones = after == nullptr ? none : after->overrides;
  const NamedLimit& limit = before == nullptr ? *after : *before;
  const auto named = [&](std::string_view id) { return "override " + limit.name + ":" + shown_id(limit, id); };
  for (std::uint32_t i = 0; i < old_ones.size(); ++i) {
    const Override* const now = new_ones.find(old_ones.id(i));
    const std::string was = print(old_ones[i], *before);
    if (now == nullptr) {
      changes.push_back({Kind::removed, named(old_ones.id(i)), "", was, "", true});
    } else if (const std::string is = print(*now, *after); is != was) {
      changes.push_back({Kind::changed, named(old_ones.id(i)), "", was, is, true});
    }
  }
  for (std::uint32_t i = 0; i < new_ones.size(); ++i) {
    if (old_ones.find(new_ones.id(i)) != nullptr) continue;
    changes.push_back({Kind::added, named(new_ones.id(i)), "", "", print(new_ones[i], *after), true});
  }
}

void diff_all_overrides(const Policy& before, const Policy& after, std::vector<Change>& changes) {
  for (const NamedLimit& limit : before.limits()) diff_overrides(&limit, after.find(limit.name), changes);
  for (const NamedLimit& limit : after.limits()) {
    if (before.find(limit.name) == nullptr) diff_overrides(nullptr, &limit, changes);
  }
}

// Adds what the edge proxy does with a route's requests, except for their backends.
void add_forwarding(const Forwarding& forwarding, std::string& out) {
  const auto add = [&](std::string_view name, const std::string& value) {
    out.append("; ").append(name).append(" ").append(value);
  };
  if (forwarding.tls) {
    const BackendTls& tls = *forwarding.tls;
    add("backend_tls", "ca_file " + quote(tls.ca_file) + " cert_file " + quote(tls.cert_file) + " key_file " +
                           quote(tls.key_file) + " server_name " + quote(tls.server_name));
  }
  if (forwarding.backend_host) add("host", "backend");
  if (forwarding.response_timeout) add("response_timeout", print_duration(*forwarding.response_timeout));
  if (forwarding.stream_idle_timeout) add("stream_idle_timeout", print_duration(*forwarding.stream_idle_timeout));
  if (forwarding.body_max) add("body_max", std::to_string(*forwarding.body_max));
  for (const auto& [name, value] : forwarding.error_headers) add("error header", name + ": " + value);
  if (forwarding.preflight_passes) add("preflight", *forwarding.preflight_passes ? "pass" : "limit");
}

// Describes a route. Two routes are equal if these texts are.
std::string words(const Route& route, const DescribedRoute& row) {
  std::string out = row.match;
  if (route.match.path.ignores_case()) out += ", in any case";
  out += ": " + row.limits;
  if (row.charge != "together") out += "; charge " + row.charge;
  if (row.mode != "enforce") out += "; mode " + row.mode;
  if (row.cost != "1") out += "; cost " + row.cost;
  if (!row.backend.empty()) out += "; backend " + row.backend;
  add_forwarding(route.forwarding, out);
  return out;
}

std::vector<Compared> routes_of(const Policy& policy) {
  std::vector<Compared> out;
  for (const Route& route : policy.routes()) {
    out.push_back({route.name, "route " + route.name, words(route, describe(route, policy))});
  }
  return out;
}

// Returns the names in both lists, in the order of the first.
std::string common_order(const std::vector<Compared>& routes, const std::vector<Compared>& others) {
  std::string out;
  for (const Compared& route : routes) {
    const bool common = std::ranges::find(others, route.key, &Compared::key) != others.end();
    if (common) out += (out.empty() ? "" : ", ") + route.key;
  }
  return out;
}

void diff_routes(const Policy& before, const Policy& after, std::vector<Change>& changes) {
  const std::vector<Compared> old_routes = routes_of(before);
  const std::vector<Compared> new_routes = routes_of(after);
  diff_compared(old_routes, new_routes, changes);
  const std::string old_order = common_order(old_routes, new_routes);
  const std::string new_order = common_order(new_routes, old_routes);
  // The first match wins, so the order matters as much as the patterns.
  if (old_order != new_order) changes.push_back({Kind::changed, "order of routes", "", old_order, new_order, true});
}

// Describes whom an entry applies to. API keys are secret.
std::string whom(const Policy& policy, const AccessEntry& entry) {
  std::string out = "access " + std::string(print(entry.list)) + " ";
  if (entry.ip) return out + entry.ip->print();
  if (entry.limit.empty()) return out + "apikey (hidden)";
  const NamedLimit* const limit = policy.find(entry.limit);
  return out + entry.limit + ":" + (limit != nullptr && limit->holds_api_key() ? "(hidden)" : entry.id);
}

std::string words(const AccessEntry& entry) {
  std::string out = entry.list == AccessEntry::List::allow ? "passes" : "refused";
  if (entry.expires) out += " until " + print_instant(*entry.expires);
  return entry.reason.empty() ? out : out + ", reason " + quote(entry.reason);
}

std::vector<Compared> access_of(const Policy& policy) {
  std::vector<Compared> out;
  for (const AccessEntry& entry : policy.access().entries()) {
    out.push_back({selector_of(entry), whom(policy, entry), words(entry)});
  }
  std::ranges::sort(out, {}, &Compared::key);
  return out;
}

std::map<std::string_view, const Setting*> by_path(const Loaded& loaded) {
  std::map<std::string_view, const Setting*> out;
  for (const Setting& setting : loaded.origins) {
    if (!setting.is_part) out.emplace(setting.path, &setting);
  }
  return out;
}

// Keeps the running listeners. Fields that need no restart get the new values of the listener with the same address and
// protocols.
std::vector<Listener> keep_listeners(const std::vector<Listener>& running, std::vector<Listener>& next) {
  std::vector<Listener> out = running;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto same = [&](const Listener& other) {
      return other.address == out[i].address && other.speak == out[i].speak;
    };
    const auto found = i < next.size() && same(next[i]) ? next.begin() + static_cast<std::ptrdiff_t>(i)
                                                        : std::ranges::find_if(next, same);
    if (found == next.end()) continue;
    for (const Field& field : find_field(file_fields(), "listen")->fields) {
      if (field.when != Applies::as_section) field.member.copy(&*found, &out[i]);
    }
  }
  return out;
}

// Copies the fields that need a restart from `running` to `next`. REQUIRES: these fields fill both structs.
void keep_section(std::span<const Field> fields, void* running, void* next) {
  for (const Field& field : fields) {
    if (field.when == Applies::on_restart) {
      if (field.member.copy != nullptr) field.member.copy(running, next);
    } else if (field.shape == Shape::one && field.member.open != nullptr) {
      keep_section(field.fields, field.member.open(running), field.member.open(next));
    }
  }
}

}  // namespace

std::string Change::text() const {
  std::string out;
  switch (kind) {
    case Kind::added:
      out = "added " + what + ": " + after;
      break;
    case Kind::removed:
      out = "removed " + what + ": " + before;
      break;
    case Kind::changed:
      out = "changed " + what + ": " + before + " -> " + after;
      break;
  }
  return live ? out : out + " (needs a restart)";
}

void keep_fixed(Settings running, Settings& next) {
  running.listen = keep_listeners(running.listen, next.listen);
  keep_section(file_fields(), &running, &next);
}

std::vector<Change> diff_settings(const Loaded& before, const Loaded& after) {
  std::vector<Change> changes;
  const auto old_settings = by_path(before);
  const auto new_settings = by_path(after);
  const auto add = [&](Kind kind, const Setting& setting, const std::string& was, const std::string& is) {
    changes.push_back({kind, "setting " + setting.path, setting.path, was, is, setting.is_live});
  };
  for (const auto& [path, setting] : old_settings) {
    const auto now = new_settings.find(path);
    if (now == new_settings.end()) {
      if (!setting->is_default) add(Kind::removed, *setting, setting->value, "");
    } else if (now->second->meaning != setting->meaning) {
      add(Kind::changed, *setting, setting->value, now->second->value);
    }
  }
  for (const auto& [path, setting] : new_settings) {
    if (!old_settings.contains(path) && !setting->is_default) add(Kind::added, *setting, "", setting->value);
  }
  return changes;
}

std::vector<Change> diff(const Loaded& before, const Loaded& after) {
  std::vector<Change> changes;
  diff_compared(limits_of(*before.policy), limits_of(*after.policy), changes);
  diff_all_overrides(*before.policy, *after.policy, changes);
  diff_routes(*before.policy, *after.policy, changes);
  diff_compared(access_of(*before.policy), access_of(*after.policy), changes);
  for (Change& change : diff_settings(before, after)) changes.push_back(std::move(change));
  return changes;
}

}  // namespace weir::config
