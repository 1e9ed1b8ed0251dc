#include "weir/config/parse.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/access.h"
#include "weir/config/amend.h"
#include "weir/config/check.h"
#include "weir/config/document.h"
#include "weir/config/environment.h"
#include "weir/config/envoy.h"
#include "weir/config/external.h"
#include "weir/config/fields.h"
#include "weir/config/forwarding.h"
#include "weir/config/jwt.h"
#include "weir/config/limits.h"
#include "weir/config/listen.h"
#include "weir/config/routes.h"
#include "weir/config/secrets.h"
#include "weir/config/settings_reader.h"
#include "weir/config/yaml.h"

namespace weir::config {
namespace {

// Returns true if the file is empty but was not before. Adds every empty file to `empty`.
bool was_emptied(const Options& options, const std::string& path, std::string_view text,
                 std::vector<std::string>& empty) {
  if (text.find_first_not_of(" \t\r\n") != text.npos) return false;
  empty.push_back(path);
  return options.empty_before && std::ranges::find(*options.empty_before, path) == options.empty_before->end();
}

// Replaces a section given as a path with the content of that file. Problems in it are reported with that file's name.
void include(const Options& options, const std::string& directory, Document& document, NodeId entry,
             Complaints& complaints, std::vector<std::string>& empty) {
  const std::string name(document.value(entry));
  const std::string path = (std::filesystem::path(directory) / name).string();
  const std::string key(document.key(entry));  // a copy: reading moves the text
  const auto refuse = [&](const std::string& sentence) {
    document.node(entry).refused = true;
    complaints.add(entry, key + ": " + sentence);
  };
  if (name.empty()) return refuse("the path of a file must not be empty");
  const Result<std::string> text = read_file(options, path, bounds::config_bytes_max);
  if (!text) return refuse(text.error().detail);
  const FileId file = document.add_file(path);
  if (was_emptied(options, path, *text, empty)) {
    document.node(entry).refused = true;
    return complaints.add(Mark{file, 1, 1}, "the file is empty; " + key + " that have nothing are written as {}");
  }
  const NodeId read = read_yaml(*text, file, document, complaints);
  if (read == kNoNode) {
    document.node(entry).refused = true;
    return;
  }
  const Node& root = document.node(read);
  if (root.kind != NodeKind::map && root.kind != NodeKind::null) {
    complaints.add(read, "a file of " + key + " must hold a map");
    document.node(entry).refused = true;
  }
  Node& place = document.node(entry);
  place.kind = root.kind == NodeKind::map ? NodeKind::map : NodeKind::null;
  place.child = root.kind == NodeKind::map ? root.child : kNoNode;
  place.file = root.file;
  place.line = place.key_line = root.line;
  place.column = place.key_column = root.column;
}

void include_all(const Options& options, const std::string& directory, Document& document, NodeId root,
                 Complaints& complaints, std::vector<std::string>& empty) {
  for (const Field& field : file_fields()) {
    const NodeId entry = document.find(root, field.name);
    const bool path = field.shape == Shape::map_or_path && document.is(entry, NodeKind::scalar);
    if (path) include(options, directory, document, entry, complaints, empty);
  }
}

// REQUIRES: each text was checked.
Result<TrustedProxies> read_trusted(const std::vector<std::string>& texts) {
  std::vector<IpPrefix> prefixes;
  bool unix_peers = false;
  for (const std::string& text : texts) {
    if (text == kUnixPeer) {
      unix_peers = true;
    } else {
      prefixes.push_back(*IpPrefix::parse(text));
    }
  }
  return TrustedProxies::make(std::move(prefixes), unix_peers);
}

// Without routes, every limit with a key applies to every request.
void warn_of_too_many(const std::vector<NamedLimit>& limits, std::vector<std::string>& warnings) {
  const auto keyed = std::ranges::count_if(limits, [](const NamedLimit& limit) { return !limit.key.empty(); });
  if (static_cast<std::size_t>(keyed) <= bounds::charges_max) return;
  warnings.push_back(std::to_string(keyed) +
                     " limits have a key and there are no routes: a request cannot be charged " + "by more than " +
                     std::to_string(bounds::charges_max) + ", so none will be answered");
}

// A tier from a header counts only if a trusted proxy sent it.
void warn_of_untrusted_tiers(const std::vector<NamedLimit>& limits, std::vector<std::string>& warnings) {
  for (const NamedLimit& limit : limits) {
    if (!limit.tier_source.starts_with("header:")) continue;
    warnings.push_back("limit " + quote(limit.name) + ": tier " + limit.tier_source +
                       " never counts, because access.trusted_proxies is empty");
  }
}

using Draft = std::variant<Checked, Problems>;

// Collects the parts of a policy, except those that need the hash key.
Policy::Parts make_parts(const Document& document, NodeId root, const Settings& settings, Limits limits,
                         std::vector<Route> routes, TrustedProxies trusted, std::shared_ptr<const JwtVerifier> jwt) {
  Policy::Parts parts;
  parts.limits = std::move(limits.made);
  parts.routes = std::move(routes);
  parts.trusted = std::move(trusted);
  parts.hash_key = settings.hash_key;
  parts.ipv6_prefix = settings.access.ipv6_prefix;
  parts.failure_policy = settings.failure_policy;
  parts.failure_code = settings.failure_code;
  const auto sends = [&](std::string_view family) {
    return std::ranges::find(settings.headers.ratelimit, family) != settings.headers.ratelimit.end();
  };
  parts.headers = {sends("x-ratelimit"), sends("ietf"), settings.headers.reset == "epoch"};
  parts.window_max = document.window_max();
  parts.block = settings.access.block;
  parts.jwt = {std::move(jwt), settings.jwt.header, settings.jwt.cookie};
  const NodeId overrides = document.find(root, "overrides");
  if (overrides != kNoNode) parts.overrides_file = document.file(document.node(overrides).file);
  return parts;
}

// Turns a tree into a checked configuration, or into the list of its problems.
Draft check_tree(const Options& options, const std::string& directory, Document& document, NodeId root,
                 Complaints& complaints) {
  if (root == kNoNode) return complaints.sorted();
  const NodeKind kind = document.node(root).kind;
  if (kind != NodeKind::map && kind != NodeKind::null) {
    complaints.add(root, "a configuration must be a map of fields");
    return complaints.sorted();
  }
  document.node(root).kind = NodeKind::map;
  Checked checked;
  Loaded& loaded = checked.loaded;
  overlay_paths(options, document, root);
  include_all(options, directory, document, root, complaints, loaded.empty_files);
  overlay_values(options, document, root, complaints, loaded.warnings);
  amend(options.amendments, document, root, complaints);
  check_section(document, root, file_fields(), complaints);
  resolve_secrets(options, document, root, file_fields(), complaints);
  loaded.settings = read_settings(document, root);
  loaded.settings.forwarding = read_forwarding(document, root, complaints);
  const Settings& settings = loaded.settings;
  if (settings.store == StoreKind::redis) document.hold_windows_to(bounds::redis_window_max);
  check_settings(document, root, settings, complaints);
  check_listeners(document, root, settings.admin, complaints);
  Limits limits = read_limits(document, root, complaints, loaded.warnings);
  DescriptorTable descriptors = read_envoy(options, directory, document, root, limits, complaints, loaded);
  read_overrides(document, root, settings.access.ipv6_prefix, limits, complaints);
  check_external(document, root, limits, complaints);
  std::vector<Route> routes = read_routes(document, root, limits, complaints, loaded.warnings);
  Result<TrustedProxies> trusted = read_trusted(settings.access.trusted_proxies);
  if (trusted) check_unix_clients(document, root, limits.made, *trusted, complaints);
  if (!trusted) complaints.add(document.find(root, "access"), trusted.error().detail);
  checked.access = read_access(document, root, limits, settings.access.ipv6_prefix, complaints);
  std::shared_ptr<const JwtVerifier> jwt =
      read_jwt(options, directory, document, root, settings, limits, complaints, loaded);
  if (!complaints.empty()) return complaints.sorted();

  read_external(document, root, limits);
  warn_of_bypass(limits.made, routes, loaded.warnings);
  if (routes.empty()) warn_of_too_many(limits.made, loaded.warnings);
  if (settings.access.trusted_proxies.empty()) warn_of_untrusted_tiers(limits.made, loaded.warnings);
  loaded.origins = list_origins(document, root, settings, limits.made);
  checked.parts =
      make_parts(document, root, settings, std::move(limits), std::move(routes), std::move(*trusted), std::move(jwt));
  checked.parts.descriptors = std::move(descriptors);
  return checked;
}

Draft check_text(std::string_view text, const std::string& name, const Options& options) {
  Document document;
  Complaints complaints(document);
  const NodeId root = read_yaml(text, document.add_file(name), document, complaints);
  Draft draft = check_tree(options, std::filesystem::path(name).parent_path().string(), document, root, complaints);
  Checked* const checked = std::get_if<Checked>(&draft);
  const auto alone = options.environment.lower_bound("WEIR_RATE_LIMIT_");
  if (checked != nullptr && alone != options.environment.end() && alone->first.starts_with("WEIR_RATE_LIMIT_")) {
    checked->loaded.warnings.push_back("variable " + alone->first + " counts only without a configuration file");
  }
  return draft;
}

Outcome finish(Draft draft, const Options& options) {
  if (auto* const problems = std::get_if<Problems>(&draft)) return std::move(*problems);
  return std::get<Checked>(std::move(draft)).finish(options.made_hash_key);
}

}  // namespace

Loaded Checked::finish(std::string_view made_hash_key) && {
  if (parts.hash_key.empty()) parts.hash_key = made_hash_key;
  parts.access = build_access(std::move(access), parts.limits, parts.ipv6_prefix, parts.hash_key);
  loaded.policy = std::make_shared<const Policy>(std::move(parts));
  return std::move(loaded);
}

Outcome parse(std::string_view text, const std::string& name, const Options& options) {
  return finish(check_text(text, name, options), options);
}

Outcome load(const std::string& path, const Options& options) {
  return finish(check(path, options), options);
}

Draft check(const std::string& path, const Options& options) {
  if (path.empty()) {
    Document document;
    Complaints complaints(document);
    const NodeId root = environment_alone(options.environment, document, complaints);
    return check_tree(options, "", document, root, complaints);
  }
  const Result<std::string> text = read_file(options, path, bounds::config_bytes_max);
  if (!text) return Problems{{path, 0, 0, text.error().detail}};
  std::vector<std::string> empty;
  if (was_emptied(options, path, *text, empty)) {
    return Problems{{path, 1, 1, "the file is empty; a configuration that has nothing is written as {}"}};
  }
  Draft draft = check_text(*text, path, options);
  if (auto* const checked = std::get_if<Checked>(&draft)) {
    checked->loaded.empty_files.insert(checked->loaded.empty_files.end(), empty.begin(), empty.end());
  }
  return draft;
}

}  // namespace weir::config
