#include "weir/simulate/needs.h"

#include <algorithm>

#include "weir/identify/key_source.h"
#include "weir/known/access_list.h"

namespace weir::simulate {
namespace {

using Fields = std::set<std::string, std::less<>>;

// The fields of which at least one must be present to know a source's value.
Fields fields_of(const KeySource& source) {
  switch (source.kind) {
    case KeySource::Kind::ip:
      return {"ip", "peer"};
    case KeySource::Kind::apikey:
      return {"header:x-api-key", "header:authorization"};
    case KeySource::Kind::attribute:
      return {source.name};
    case KeySource::Kind::cookie:
      return {"header:cookie"};
    case KeySource::Kind::query:
    case KeySource::Kind::path:
    case KeySource::Kind::segment:
      return {"path"};
    case KeySource::Kind::method:
      return {"method"};
    case KeySource::Kind::host:
      return {"host"};
    case KeySource::Kind::global:
    case KeySource::Kind::jwt:
      break;
  }
  return {};
}

bool has_source(const Sight& sight, const KeySource& source) {
  if (source.kind == KeySource::Kind::global) return true;
  if (source.kind == KeySource::Kind::query && !sight.has_queries) return false;
  const Fields fields = fields_of(source);
  return std::ranges::any_of(fields, [&](const std::string& field) { return sight.fields.contains(field); });
}

// Returns the limits that some request may be charged for.
std::vector<const NamedLimit*> used_limits(const Policy& policy) {
  std::vector<const NamedLimit*> used;
  for (std::size_t i = 0; i < policy.limits().size(); ++i) {
    const NamedLimit& limit = policy.limits()[i];
    if (limit.sources.empty() || limit.mode == Enforcement::off) continue;
    const bool routed = policy.routes().empty() || std::ranges::any_of(policy.routes(), [&](const Route& route) {
                          return route.all_limits || std::ranges::find(route.limits, i) != route.limits.end();
                        });
    if (routed) used.push_back(&limit);
  }
  return used;
}

}  // namespace

std::set<std::string, std::less<>> wanted_fields(const Policy& policy) {
  Fields wanted{"ip", "peer", "header:x-forwarded-for", "header:x-real-ip"};
  if (!policy.access().empty()) wanted.insert({"header:x-api-key", "header:authorization"});
  for (const NamedLimit* const limit : used_limits(policy)) {
    for (const KeySource& source : limit->sources) wanted.merge(fields_of(source));
    if (limit->tier) wanted.merge(fields_of(*limit->tier));
  }
  for (const Route& route : policy.routes()) {
    wanted.insert("path");
    if (!route.match.methods.empty()) wanted.insert("method");
    if (!route.match.host.text().empty()) wanted.insert("host");
    for (const auto& [name, value] : route.match.headers) wanted.insert(name);
    if (!route.cost_header.empty()) wanted.insert(route.cost_header);
  }
  return wanted;
}

std::vector<Lack> find_lacks(const Policy& policy, const Sight& sight) {
  std::vector<Lack> lacks;
  const auto add = [&](Lack::What what, const std::string& name, std::vector<std::string> sources) {
    if (!sources.empty()) lacks.push_back({what, name, std::move(sources)});
  };
  for (const NamedLimit* const limit : used_limits(policy)) {
    std::vector<std::string> sources;
    for (std::size_t i = 0; i < limit->sources.size(); ++i) {
      if (!has_source(sight, limit->sources[i])) sources.push_back(limit->key[i]);
    }
    if (limit->tier && !has_source(sight, *limit->tier)) sources.push_back(limit->tier_source);
    // Overrides name ids in clear text, but such a log has only their hashes or handles.
    const bool hidden = limit->hides_ids() && limit->overrides.size() > 0;
    const bool own = sight.is_own && sight.counted.contains(limit->name) && !hidden;
    add(own ? Lack::What::counted : Lack::What::limit, limit->name, std::move(sources));
  }
  for (const Route& route : policy.routes()) {
    std::vector<std::string> sources;
    if (!route.match.methods.empty() && !sight.fields.contains("method")) sources.emplace_back("method");
    if (!route.match.host.text().empty() && !sight.fields.contains("host")) sources.emplace_back("host");
    for (const auto& [name, value] : route.match.headers) {
      if (!sight.fields.contains(name)) sources.push_back(name);
    }
    add(Lack::What::route, route.name, std::move(sources));
    const bool costs = !route.cost_header.empty() && !sight.fields.contains(route.cost_header);
    if (costs && !sight.is_own) add(Lack::What::cost, route.name, {route.cost_header});
  }
  const bool by_key =
      std::ranges::any_of(policy.access().entries(), [](const AccessEntry& entry) { return !entry.apikey.empty(); });
  if (by_key && !has_source(sight, KeySource{KeySource::Kind::apikey, {}, 0})) {
    add(Lack::What::access_list, "access", {"apikey"});
  }
  return lacks;
}

std::string sentence(const Lack& lack) {
  std::string sources;
  for (const std::string& source : lack.sources) sources += (sources.empty() ? "" : ", ") + source;
  switch (lack.what) {
    case Lack::What::limit:
      return "cannot judge limit " + lack.name + ": the log has no " + sources;
    case Lack::What::counted:
      return "limit " + lack.name + ": the log has no " + sources + "; using the ids that the server counted";
    case Lack::What::route:
      return "cannot judge requests that may take route " + lack.name + ": the log has no " + sources;
    case Lack::What::cost:
      return "cannot judge requests of route " + lack.name + ": the log has no " + sources + ", which is their cost";
    case Lack::What::access_list:
      break;
  }
  return "cannot apply the access entries by API key: the log has no " + sources;
}

}  // namespace weir::simulate
