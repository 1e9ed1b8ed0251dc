#include "weir/policy/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "weir/base/text.h"
#include "weir/policy/check.h"
#include "weir/policy/fields.h"
#include "weir/policy/nearest.h"

namespace weir::policy {
namespace {

constexpr std::string_view kPrefix = "WEIR_";

constexpr std::string_view kEnabled = "WEIR_RATE_LIMIT_ENABLED";
constexpr std::string_view kPerSecond = "WEIR_RATE_LIMIT_REQUESTS_PER_SEC";
constexpr std::string_view kBurst = "WEIR_RATE_LIMIT_BURST";
constexpr std::string_view kByIp = "WEIR_RATE_LIMIT_BY_IP";
constexpr std::string_view kByApikey = "WEIR_RATE_LIMIT_BY_APIKEY";
constexpr std::string_view kCleanup = "WEIR_RATE_LIMIT_CLEANUP";

// Ours, but no settings: the six of a server without a file, and those that tell other commands where a server is.
constexpr std::array kOthers = {kEnabled,
                                kPerSecond,
                                kBurst,
                                kByIp,
                                kByApikey,
                                kCleanup,
                                std::string_view("WEIR_SERVER"),
                                std::string_view("WEIR_ADMIN"),
                                std::string_view("WEIR_TOKEN")};

// Kubernetes tells every container about services, and one may be called weir: WEIR_SERVICE_HOST, WEIR_PORT_80_TCP.
bool is_service_link(std::string_view variable) {
  for (const std::string_view end :
       {"_SERVICE_HOST", "_SERVICE_PORT", "_PORT", "_TCP", "_UDP", "_SCTP", "_TCP_PROTO", "_TCP_PORT", "_TCP_ADDR",
        "_UDP_PROTO", "_UDP_PORT", "_UDP_ADDR", "_SCTP_PROTO", "_SCTP_PORT", "_SCTP_ADDR"}) {
    if (variable.ends_with(end)) return true;
  }
  return variable.find("_SERVICE_PORT_") != std::string_view::npos;
}

std::string join(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : std::string(path) + "." + std::string(name);
}

// Lays values over one document: variables first, then flags.
class Overlay {
 public:
  Overlay(const Options& options, Document& document) : options_(options), document_(document) {}

  // Every field of a section. The section itself is made when a value needs it.
  void lay_section(NodeId parent, std::string_view path, std::span<const Field> fields) {
    for (const Field& field : fields) {
      const std::string below = join(path, field.name);
      if (field.type != Type::section) {
        lay_leaf(parent, below, field);
      } else if (field.shape == Shape::one) {
        lay_below(parent, below, field);
      }
    }
  }

  void lay_leaf(NodeId parent, const std::string& path, const Field& field) {
    if (field.shape == Shape::map) return;
    const std::string variable = variable_name(path);
    known_[variable].push_back(path);
    if (const auto found = options_.environment.find(variable); found != options_.environment.end()) {
      set(parent, field, found->second, variable);
    }
    if (const auto found = options_.flags.find(path); found != options_.flags.end()) {
      flags_used_.push_back(path);
      set(parent, field, found->second, "flag " + path);
    }
  }

  // Every entry of a map that the file has.
  void lay_entries(NodeId root, const Field& field) {
    const NodeId map = document_.find(root, field.name);
    if (map == kNoNode || document_.node(map).kind != NodeKind::map || !mentions(field.name)) return;
    for (NodeId entry = document_.node(map).child; entry != kNoNode; entry = document_.node(entry).next) {
      const std::string path = join(field.name, document_.key(entry));
      if (document_.node(entry).kind == NodeKind::map) lay_section(entry, path, field.fields);
    }
  }

  // A setting that lay_paths() lays.
  void know(std::string_view path) { known_[variable_name(path)].emplace_back(path); }

  void complain(Complaints& complaints) {
    for (const auto& [path, value] : options_.flags) {
      if (std::find(flags_used_.begin(), flags_used_.end(), path) != flags_used_.end()) continue;
      complaints.add({document_.add_file("flag " + path), 0, 0}, "there is no setting " + quote(path));
    }
    for (const auto& [variable, paths] : known_) {
      if (paths.size() < 2 || !options_.environment.contains(variable)) continue;
      complaints.add({document_.add_file(variable), 0, 0}, "could mean " + paths[0] + " or " + paths[1]);
    }
    for (auto found = options_.environment.lower_bound(kPrefix);
         found != options_.environment.end() && found->first.starts_with(kPrefix); ++found) {
      complain_unknown(found->first, complaints);
    }
  }

 private:
  // A variable that looks like ours and is not would be a setting that silently does nothing.
  void complain_unknown(const std::string& variable, Complaints& complaints) {
    if (known_.contains(variable) || std::ranges::find(kOthers, variable) != kOthers.end()) return;
    if (is_service_link(variable) || is_secret(variable)) return;
    std::vector<std::string_view> names(kOthers.begin(), kOthers.end());
    for (const auto& [name, paths] : known_) names.push_back(name);
    const std::string_view near = nearest_word(names, variable);
    complaints.add({document_.add_file(variable), 0, 0},
                   "is no setting" + (near.empty() ? std::string() : "; did you mean " + std::string(near) + "?"));
  }

  // Whether the configuration asks for it as `env:NAME`.
  bool is_secret(std::string_view variable) const {
    for (NodeId id = 0; id < document_.size(); ++id) {
      const std::string_view value = document_.value(id);
      if (value.starts_with("env:") && value.substr(4) == variable) return true;
    }
    return false;
  }

  // Whether any variable or flag begins like something below this path: most maps are large and untouched.
  bool mentions(std::string_view path) const {
    const std::string variable = variable_name(path);
    const auto begins = [](const Environment& values, const std::string& start) {
      const auto found = values.lower_bound(start);
      return found != values.end() && found->first.starts_with(start);
    };
    return begins(options_.environment, variable) || begins(options_.flags, std::string(path));
  }

  void lay_below(NodeId parent, const std::string& path, const Field& field) {
    const NodeId found = document_.find(parent, field.name);
    if (found != kNoNode && document_.node(found).kind == NodeKind::map) return lay_section(found, path, field.fields);
    if (found != kNoNode && document_.node(found).kind != NodeKind::null) return;  // the checker complains
    Node node;
    node.kind = NodeKind::map;
    node.file = found == kNoNode ? document_.node(parent).file : document_.node(found).file;
    node.key = document_.keep(field.name);
    const NodeId made = document_.add(node);
    lay_section(made, path, field.fields);
    if (document_.node(made).child == kNoNode) return;
    if (found == kNoNode) return document_.append(parent, made);
    document_.node(found).kind = NodeKind::map;
    document_.node(found).child = document_.node(made).child;
  }

  void set(NodeId parent, const Field& field, std::string_view value, const std::string& from) {
    NodeId entry = document_.find(parent, field.name);
    if (entry == kNoNode) {
      Node node;
      node.key = document_.keep(field.name);
      entry = document_.add(node);
      document_.append(parent, entry);
    }
    const FileId file = document_.add_file(from);
    make_scalar(entry, file, value);
    if (field.shape != Shape::list && field.shape != Shape::one_or_list) return;
    document_.node(entry).kind = NodeKind::sequence;
    document_.node(entry).value = {};
    for (std::size_t at = 0; at <= value.size() && !value.empty();) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      const NodeId item = document_.add({});
      make_scalar(item, file, value.substr(at, comma - at));
      document_.append(entry, item);
      at = comma + 1;
    }
  }

  void make_scalar(NodeId id, FileId file, std::string_view value) {
    const Slice kept = document_.keep(value);
    Node& node = document_.node(id);
    node.kind = NodeKind::scalar;
    node.quoted = false;
    node.file = file;
    node.line = node.column = node.key_line = node.key_column = 0;
    node.value = kept;
    node.child = kNoNode;
  }

  const Options& options_;
  Document& document_;
  std::map<std::string, std::vector<std::string>, std::less<>> known_;
  std::vector<std::string> flags_used_;
};

// Builds a tree by hand.
class Sketch {
 public:
  Sketch(const Environment& environment, Document& document, Complaints& complaints)
      : environment_(environment),
        document_(document),
        complaints_(complaints),
        here_(document.add_file("environment")) {}

  NodeId map(NodeId parent, std::string_view key) {
    Node node;
    node.kind = NodeKind::map;
    return add(node, parent, key, here_);
  }

  // The entry has the variable's place, or none if the variable is not set.
  void scalar(NodeId parent, std::string_view key, std::string_view value, std::string_view variable = {}) {
    Node node;
    node.kind = NodeKind::scalar;
    node.value = document_.keep(value);
    add(node, parent, key, environment_.contains(variable) ? document_.add_file(std::string(variable)) : here_);
  }

  std::string value(std::string_view name, std::string_view fallback) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string(fallback) : found->second;
  }

  bool flag(std::string_view name, bool fallback) {
    const std::string text = value(name, fallback ? "true" : "false");
    if (text == "true" || text == "false") return text == "true";
    complain(name, "must be true or false, not " + quote(text));
    return fallback;
  }

  // A number of requests per second, as a rate.
  std::string per_second(std::string_view name, std::string_view fallback) {
    const std::string text = value(name, fallback);
    if (parse_rate(text + "/s")) return text + "/s";
    complain(name, "must be a number of requests per second above 0, such as 100 or 0.5, not " + quote(text));
    return std::string(fallback) + "/s";
  }

 private:
  void complain(std::string_view name, std::string sentence) {
    complaints_.add({document_.add_file(std::string(name)), 0, 0}, std::move(sentence));
  }

  NodeId add(Node node, NodeId parent, std::string_view key, FileId file) {
    node.file = file;
    node.key = document_.keep(key);
    const NodeId id = document_.add(node);
    if (parent != kNoNode) document_.append(parent, id);
    return id;
  }

  const Environment& environment_;
  Document& document_;
  Complaints& complaints_;
  FileId here_;
};

}  // namespace

std::string variable_name(std::string_view path) {
  std::string out(kPrefix);
  for (const char c : path) {
    const bool letter = c >= 'a' && c <= 'z';
    out += letter ? static_cast<char>(c - ('a' - 'A')) : (c == '.' || c == '-' ? '_' : c);
  }
  return out;
}

void lay_paths(const Options& options, Document& document, NodeId root) {
  Overlay overlay(options, document);
  for (const Field& field : file_fields()) {
    if (field.shape == Shape::map_or_path) overlay.lay_leaf(root, std::string(field.name), field);
  }
}

void lay_values(const Options& options, Document& document, NodeId root, Complaints& complaints) {
  Overlay overlay(options, document);
  for (const Field& field : file_fields()) {
    if (field.shape == Shape::map_or_path) overlay.know(field.name);
  }
  overlay.lay_section(root, {}, file_fields());
  for (const std::string_view name : {"limits", "names"}) {
    overlay.lay_entries(root, *find_field(file_fields(), name));
  }
  overlay.complain(complaints);
}

NodeId environment_alone(const Environment& environment, Document& document, Complaints& complaints) {
  Sketch sketch(environment, document, complaints);
  const bool enabled = sketch.flag(kEnabled, true);
  const bool by_ip = sketch.flag(kByIp, true);
  const bool by_apikey = sketch.flag(kByApikey, false);
  if (enabled && !by_ip && !by_apikey) {
    complaints.add({document.add_file(std::string(kEnabled)), 0, 0},
                   "is true, but " + std::string(kByIp) + " and " + std::string(kByApikey) + " are both false");
  }
  const std::string rate = sketch.per_second(kPerSecond, "100.0");
  const NodeId root = sketch.map(kNoNode, "");
  const NodeId limits = sketch.map(root, "limits");
  struct Strategy {
    std::string_view name;
    std::string_view key;
    bool on;
  };
  for (const Strategy& strategy : {Strategy{"per-ip", "ip", by_ip}, Strategy{"per-apikey", "apikey", by_apikey}}) {
    if (!strategy.on) continue;
    const NodeId limit = sketch.map(limits, strategy.name);
    sketch.scalar(limit, "key", strategy.key);
    sketch.scalar(limit, "rate", rate, kPerSecond);
    sketch.scalar(limit, "burst", sketch.value(kBurst, "20"), kBurst);
    // Switched off is not the same as absent: whoever names the limit is let through.
    if (!enabled) sketch.scalar(limit, "mode", "off", kEnabled);
  }
  const NodeId memory = sketch.map(root, "memory");
  sketch.scalar(memory, "cleanup", sketch.value(kCleanup, "5m"), kCleanup);
  return root;
}

}  // namespace weir::policy
