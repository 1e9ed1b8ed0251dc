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
constexpr std::string_view kAlone = "WEIR_RATE_LIMIT_";

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

  void complain(Complaints& complaints, std::vector<std::string>& warnings) {
    for (const auto& [path, value] : options_.flags) {
      if (std::find(flags_used_.begin(), flags_used_.end(), path) != flags_used_.end()) continue;
      complaints.add({document_.add_file("flag " + path), 0, 0}, "there is no setting " + quote(path));
    }
    std::vector<std::string_view> names;
    for (const auto& [variable, paths] : known_) {
      names.push_back(variable);
      if (paths.size() < 2 || !options_.environment.contains(variable)) continue;
      complaints.add({document_.add_file(variable), 0, 0}, "could mean " + paths[0] + " or " + paths[1]);
    }
    for (const auto& [variable, value] : options_.environment) {
      if (!variable.starts_with(kPrefix) || variable.starts_with(kAlone) || known_.contains(variable)) continue;
      const std::string_view near = nearest_word(names, variable);
      if (near.empty()) continue;
      warnings.push_back("variable " + variable + " is no setting; did you mean " + std::string(near) + "?");
    }
  }

 private:
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

  std::string value(const std::string& name, std::string_view fallback) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string(fallback) : found->second;
  }

  bool flag(const std::string& name, bool fallback) {
    const std::string text = value(name, fallback ? "true" : "false");
    if (text == "true" || text == "false") return text == "true";
    complaints_.add({document_.add_file(name), 0, 0}, "must be true or false, not " + quote(text));
    return fallback;
  }

 private:
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

void lay_values(const Options& options, Document& document, NodeId root, Complaints& complaints,
                std::vector<std::string>& warnings) {
  Overlay overlay(options, document);
  overlay.lay_section(root, {}, file_fields());
  for (const std::string_view name : {"limits", "names"}) {
    overlay.lay_entries(root, *find_field(file_fields(), name));
  }
  overlay.complain(complaints, warnings);
}

NodeId environment_alone(const Environment& environment, Document& document, Complaints& complaints) {
  const std::string per_second = "WEIR_RATE_LIMIT_REQUESTS_PER_SEC";
  const std::string burst = "WEIR_RATE_LIMIT_BURST";
  Sketch sketch(environment, document, complaints);
  const bool enabled = sketch.flag("WEIR_RATE_LIMIT_ENABLED", true);
  const bool by_ip = sketch.flag("WEIR_RATE_LIMIT_BY_IP", true);
  const bool by_apikey = sketch.flag("WEIR_RATE_LIMIT_BY_APIKEY", false);
  if (enabled && !by_ip && !by_apikey) {
    complaints.add({document.add_file("WEIR_RATE_LIMIT_ENABLED"), 0, 0},
                   "is true, but WEIR_RATE_LIMIT_BY_IP and WEIR_RATE_LIMIT_BY_APIKEY are both false");
  }
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
    sketch.scalar(limit, "rate", sketch.value(per_second, "100.0") + "/s", per_second);
    sketch.scalar(limit, "burst", sketch.value(burst, "20"), burst);
    // Switched off is not the same as absent: whoever names the limit is let through.
    if (!enabled) sketch.scalar(limit, "mode", "off", "WEIR_RATE_LIMIT_ENABLED");
  }
  const NodeId memory = sketch.map(root, "memory");
  const std::string cleanup = "WEIR_RATE_LIMIT_CLEANUP";
  sketch.scalar(memory, "cleanup", sketch.value(cleanup, "5m"), cleanup);
  return root;
}

}  // namespace weir::policy
