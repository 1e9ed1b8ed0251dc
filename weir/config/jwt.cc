#include "weir/config/jwt.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "weir/base/text.h"
#include "weir/config/secrets.h"
#include "weir/config/values.h"
#include "weir/policy/match.h"

namespace weir::config {
namespace {

// Returns the claims that determine keys and tiers, each once, and stores their indexes in the limits' sources.
std::vector<std::string> number_claims(std::vector<NamedLimit>& limits) {
  std::vector<std::string> claims;
  const auto number = [&](KeySource& source) {
    if (source.kind != KeySource::Kind::jwt) return;
    const auto found = std::ranges::find(claims, source.name);
    source.segment = static_cast<std::size_t>(found - claims.begin());
    if (found == claims.end()) claims.push_back(source.name);
  };
  for (NamedLimit& limit : limits) {
    for (KeySource& source : limit.sources) number(source);
    if (limit.tier) number(*limit.tier);
  }
  return claims;
}

JwtRules rules_of(const Jwt& settings) {
  JwtRules rules{settings.secret, settings.issuer, settings.audience, settings.leeway, {}, settings.require_exp};
  for (const auto one : {JwtAlgorithm::rs256, JwtAlgorithm::es256, JwtAlgorithm::eddsa, JwtAlgorithm::hs256}) {
    if (std::ranges::find(settings.algorithms, print(one)) != settings.algorithms.end()) {
      rules.algorithms.push_back(one);
    }
  }
  return rules;
}

Result<JwtKeys> read_keys(const Options& options, const std::string& path) {
  const Result<std::string> text = read_file(options, path, bounds::json_bytes_max);
  if (!text) return text.error();
  Result<JwtKeys> keys = JwtKeys::parse(*text);
  if (!keys) return Error{keys.error().fault, "the file " + quote(path) + ": " + keys.error().detail};
  return keys;
}

// Refuses what no token could satisfy.
void refuse_impossible(const Document& document, NodeId section, const Jwt& jwt, Complaints& complaints) {
  for (const auto& [field, name] : {std::pair("header", &jwt.header), std::pair("cookie", &jwt.cookie)}) {
    if (name->empty() || check_key_source(std::string(field) + ":" + *name)) continue;
    complaints.add(document.find(section, field), std::string(field) + " " + quote(*name) + " is not a " + field +
                                                      "'s name, which has no spaces and no colon");
  }
  const NodeId algorithms = document.find(section, "algorithms");
  if (jwt.algorithms.empty() && algorithms != kNoNode && !document.node(algorithms).refused) {
    complaints.add(algorithms, "algorithms must name at least one");
  }
}

bool is_credential(const KeySource& source) {
  return source.kind == KeySource::Kind::jwt || source.kind == KeySource::Kind::apikey;
}

bool is_bypassed(const NamedLimit& limit) {
  return limit.missing == Missing::skip && std::ranges::any_of(limit.sources, is_credential);
}

}  // namespace

std::shared_ptr<const JwtVerifier> read_jwt(const Options& options, const std::string& directory,
                                            const Document& document, NodeId root, const Settings& settings,
                                            Limits& limits, Complaints& complaints, Loaded& loaded) {
  const Jwt& jwt = settings.jwt;
  const NodeId section = document.find(root, "jwt");
  refuse_impossible(document, section, jwt, complaints);
  if (!jwt.keys.empty()) {
    const std::filesystem::path path(jwt.keys);
    Result<JwtKeys> keys =
        read_keys(options, path.is_absolute() ? jwt.keys : (std::filesystem::path(directory) / path).string());
    if (!keys && options.jwt_counts != nullptr) options.jwt_counts->add_key_failure();
    if (keys) {
      loaded.jwt_keys = std::move(*keys);
    } else if (!options.jwt_keys.keys().empty()) {
      loaded.jwt_keys = options.jwt_keys;
      loaded.warnings.push_back("jwt.keys: " + keys.error().detail + "; keeping the keys in force");
    } else {
      complaints.add(document.find(section, "keys"), "keys: " + keys.error().detail);
    }
  }
  std::vector<std::string> claims = number_claims(limits.made);
  if (claims.empty()) return nullptr;
  if (jwt.keys.empty() && jwt.secret.empty()) {
    complaints.add(section == kNoNode ? document.find(root, "limits") : section,
                   "jwt:" + claims.front() + " needs jwt.keys or jwt.secret to verify tokens with");
  }
  return std::make_shared<const JwtVerifier>(rules_of(jwt), loaded.jwt_keys, std::move(claims), random_hash_key(),
                                             options.jwt_counts);
}

void warn_of_bypass(const std::vector<NamedLimit>& limits, const std::vector<Route>& routes,
                    std::vector<std::string>& warnings) {
  const auto has_claim = [](const NamedLimit& limit) {
    return std::ranges::any_of(limit.sources,
                               [](const KeySource& source) { return source.kind == KeySource::Kind::jwt; });
  };
  // Limits that never deny protect nobody.
  const auto warn = [&](std::vector<const NamedLimit*> asked, Enforcement mode, const std::string& where) {
    std::erase_if(asked, [&](const NamedLimit* limit) { return laxer(limit->mode, mode) != Enforcement::enforce; });
    const bool any = std::ranges::any_of(asked, [&](const NamedLimit* limit) { return has_claim(*limit); });
    const bool all = std::ranges::all_of(asked, [&](const NamedLimit* limit) { return is_bypassed(*limit); });
    if (!any || !all) return;
    warnings.push_back(where + " limited only by credentials, and requests without valid ones are skipped: a garbage " +
                       "token bypasses every limit; add a limit by ip, or missing: reject");
  };
  std::vector<const NamedLimit*> keyed;
  for (const NamedLimit& limit : limits) {
    if (!limit.sources.empty()) keyed.push_back(&limit);
  }
  if (routes.empty()) return warn(keyed, Enforcement::enforce, "requests are");
  for (const Route& route : routes) {
    std::vector<const NamedLimit*> named;
    for (const std::uint32_t index : route.limits) named.push_back(&limits[index]);
    warn(route.all_limits ? keyed : named, route.mode, "route " + quote(route.name) + " is");
  }
}

}  // namespace weir::config
