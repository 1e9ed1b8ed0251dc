#include "weir/config/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "weir/base/nearest.h"
#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/fields.h"
#include "weir/config/settings_reader.h"
#include "weir/config/spellings.h"

namespace weir::config {
namespace {

constexpr std::string_view kPrefix = "WEIR_";
constexpr std::string_view kEnv = "env:";

// Known variables that are not settings: those of a server without a file, and those that other commands read.
constexpr std::array kOthers = {alone::kEnabled,
                                alone::kPerSecond,
                                alone::kBurst,
                                alone::kByIp,
                                alone::kByApikey,
                                alone::kCleanup,
                                std::string_view("WEIR_SERVER"),
                                std::string_view("WEIR_ADMIN"),
                                std::string_view("WEIR_TOKEN"),
                                std::string_view("WEIR_LISTEN_HTTP"),
                                std::string_view("WEIR_LISTEN_RESP"),
                                std::string_view("WEIR_LISTEN_ADMIN"),
                                std::string_view("WEIR_LISTEN_PROXY")};

// Kubernetes sets variables for every service in each container. A service named weir has WEIR_SERVICE_HOST,
// WEIR_PORT_80_TCP, ….
bool is_service_link(std::string_view variable) {
  for (const std::string_view end :
       {"_SERVICE_HOST", "_SERVICE_PORT", "_PORT", "_TCP", "_UDP", "_SCTP", "_TCP_PROTO", "_TCP_PORT", "_TCP_ADDR",
        "_UDP_PROTO", "_UDP_PORT", "_UDP_ADDR", "_SCTP_PROTO", "_SCTP_PORT", "_SCTP_ADDR"}) {
    if (variable.ends_with(end)) return true;
  }
  return variable.find("_SERVICE_PORT_") != std::string_view::npos;
}

// Returns true if the name starts with that of a section or a setting: WEIR_REDIS_..., WEIR_THREADS,
// WEIR_RATE_LIMIT_....
bool begins_like_a_setting(std::string_view variable) {
  const auto begins = [&](std::string_view start) {
    return variable.starts_with(start) && (variable.size() == start.size() || variable[start.size()] == '_');
  };
  return begins("WEIR_RATE_LIMIT") ||
         std::ranges::any_of(file_fields(), [&](const Field& field) { return begins(variable_name(field.name)); });
}

std::string path_of(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : std::string(path) + "." + std::string(name);
}

// Applies values to one document: variables first, then flags.
class Overlay {
 public:
  Overlay(const Options& options, Document& document) : options_(options), document_(document) {}

  // Every field of a section. The section itself is made when a value needs it.
  void set_section(NodeId parent, std::string_view path, std::span<const Field> fields) {
    for (const Field& field : fields) {
      const std::string below = path_of(path, field.name);
      if (field.type != Type::section) {
        set_leaf(parent, below, field);
      } else if (field.shape == Shape::one) {
        set_below(parent, below, field);
      } else if (field.shape == Shape::map) {
        set_map(parent, below, field);
      } else if (field.shape == Shape::list && begins(options_.flags, below + "[")) {
        set_items(parent, below, field);
      }
    }
  }

  void set_leaf(NodeId parent, const std::string& path, const Field& field) {
    if (field.shape == Shape::map) return;
    const std::string variable = variable_name(path);
    known_[variable].push_back(path);
    if (const auto found = options_.environment.find(variable); found != options_.environment.end()) {
      set(parent, field, found->second, variable);
    }
    set_flag(parent, path, field);
  }

  // Every entry of a map of sections that the file has.
  void set_map(NodeId parent, const std::string& above, const Field& field) {
    const NodeId map = document_.find(parent, field.name);
    if (!document_.is(map, NodeKind::map) || !mentions(above)) return;
    for (const NodeId entry : document_.children(map)) {
      const std::string path = path_of(above, document_.key(entry));
      if (document_.node(entry).kind != NodeKind::map) continue;
      // Variables and flags replace the file's value in any spelling; flags replace variables.
      remove_replaced(document_, entry, mentioned(options_.environment, variable_name(path) + "_", field.fields, true));
      set_section(entry, path, field.fields);
      const std::vector<std::string> flags = mentioned(options_.flags, path + ".", field.fields, false);
      if (flags.empty()) continue;
      remove_replaced(document_, entry, flags);
      for (const std::string& name : flags) set_flag(entry, path_of(path, name), *find_field(field.fields, name));
    }
  }

  // Both `limits` and `names` may set a limit's number and id format: the source with higher precedence wins.
  void resolve_identities(NodeId root) {
    if (!mentions("limits") && !mentions("names")) return;
    std::map<std::string, NodeId, std::less<>> names;
    for (const NodeId entry : document_.children(document_.find(root, "names"))) {
      names.emplace(document_.key(entry), entry);
    }
    for (const NodeId limit : document_.children(document_.find(root, "limits"))) {
      const auto name = names.find(document_.key(limit));
      if (name == names.end()) continue;
      for (const std::string_view key : {"number", "id"}) {
        const NodeId here = document_.find(limit, key);
        const NodeId there = document_.find(name->second, key);
        if (here == kNoNode || there == kNoNode || rank(here) == rank(there)) continue;
        drop(document_, rank(here) < rank(there) ? limit : name->second, key);
      }
    }
  }

  // A setting that overlay_paths() applies.
  void know(std::string_view path) {
    known_[variable_name(path)].emplace_back(path);
    flags_used_.emplace_back(path);
  }

  // The default listeners, written out for variables and flags that change them.
  void write_listeners(NodeId root) {
    if (!begins(options_.flags, "listen[") && !begins(options_.environment, "WEIR_LISTEN_")) return;
    if (has_listeners(document_, root)) return;
    drop(document_, root, "listen");
    const FileId nowhere = document_.add_file(std::string(kNoVariable));
    const NodeId list = document_.add_entry(root, nowhere, NodeKind::sequence, "listen");
    for (const Listener& listener : default_listeners()) {
      add_listener(list, nowhere, listener.address, listener.speak);
    }
  }

  // WEIR_LISTEN_HTTP etc. set the address of the listener with that protocol, or add a listener. An empty value removes
  // a default listener.
  void set_listeners(NodeId root, Complaints& complaints) {
    write_listeners(root);
    for (const auto& [variable, speak] :
         std::to_array<std::pair<std::string_view, std::string_view>>({{"WEIR_LISTEN_HTTP", "http"},
                                                                       {"WEIR_LISTEN_RESP", "resp"},
                                                                       {"WEIR_LISTEN_ADMIN", "admin"},
                                                                       {"WEIR_LISTEN_PROXY", "proxy"}})) {
      const auto found = options_.environment.find(variable);
      if (found == options_.environment.end()) continue;
      const FileId file = document_.add_file(std::string(variable));
      if (const std::string problem = set_listener(document_.find(root, "listen"), file, speak, found->second);
          !problem.empty()) {
        complaints.add({file, 0, 0}, problem);
      }
    }
  }

  void complain(Complaints& complaints, std::vector<std::string>& warnings) {
    for (const auto& [path, value] : options_.flags) {
      if (std::find(flags_used_.begin(), flags_used_.end(), path) != flags_used_.end()) continue;
      std::vector<std::string_view> paths;
      for (const auto& [variable, named] : known_) paths.insert(paths.end(), named.begin(), named.end());
      complaints.add({document_.add_file(std::string(kFlag) + path), 0, 0},
                     "there is no setting " + quote(path) + did_you_mean(paths, path));
    }
    for (const auto& [variable, paths] : known_) {
      if (paths.size() < 2 || !options_.environment.contains(variable)) continue;
      complaints.add({document_.add_file(variable), 0, 0}, "could mean " + paths[0] + " or " + paths[1]);
    }
    for (auto found = options_.environment.lower_bound(kPrefix);
         found != options_.environment.end() && found->first.starts_with(kPrefix); ++found) {
      complain_unknown(found->first, complaints, warnings);
    }
  }

 private:
  void add_listener(NodeId list, FileId file, std::string_view address, const std::vector<std::string>& words) {
    const NodeId item = document_.add_entry(list, file, NodeKind::map, "");
    document_.add_entry(item, file, NodeKind::scalar, "address", address);
    const NodeId speak = document_.add_entry(item, file, NodeKind::sequence, "speak");
    for (const std::string& word : words) document_.add_entry(speak, file, NodeKind::scalar, "", word);
  }

  // Returns the entries of `listen` that speak this protocol.
  std::vector<NodeId> speakers(NodeId list, std::string_view word) const {
    std::vector<NodeId> found;
    for (const NodeId item : document_.children(list)) {
      const NodeId speak = document_.find(item, "speak");
      if (speak == kNoNode) continue;
      bool speaks = document_.value(speak) == word;
      for (const NodeId one : document_.children(speak)) speaks = speaks || document_.value(one) == word;
      if (speaks) found.push_back(item);
    }
    return found;
  }

  // Returns what is wrong; empty if nothing is.
  std::string set_listener(NodeId list, FileId file, std::string_view speak, std::string_view value) {
    if (!document_.is(list, NodeKind::sequence)) return {};  // the checker complains
    const std::vector<NodeId> found = speakers(list, speak);
    const auto place = [&](NodeId item) { return document_.where(document_.mark(item)); };
    if (found.size() > 1) {
      return "two listeners speak " + std::string(speak) + ", at " + place(found[0]) + " and " + place(found[1]) +
             ": set the address of one with --set listen[N].address=ADDRESS";
    }
    const std::string address = (value.starts_with(':') ? "0.0.0.0" : "") + std::string(value);
    if (found.empty()) {
      if (value.empty()) return {};
      add_listener(
          list, file, address,
          speak == "http" ? std::vector<std::string>{"http", "grpc"} : std::vector<std::string>{std::string(speak)});
      return {};
    }
    if (!value.empty()) {
      set(found[0], *find_field(find_field(file_fields(), "listen")->fields, "address"), address, document_.file(file));
      return {};
    }
    if (document_.file(document_.node(found[0]).file) != kNoVariable) {
      return "is empty, which removes a default listener; the one at " + place(found[0]) + " is the file's own";
    }
    remove_child(list, found[0]);
    return {};
  }

  void remove_child(NodeId list, NodeId item) {
    NodeId before = kNoNode;
    for (NodeId id = document_.node(list).child; id != item; id = document_.node(id).next) before = id;
    const NodeId next = document_.node(item).next;
    if (before == kNoNode) {
      document_.node(list).child = next;
    } else {
      document_.node(before).next = next;
    }
  }

  // An unknown variable that starts like a setting is an error, because it would silently have no effect. Any other may
  // belong to another program and gets a warning.
  void complain_unknown(const std::string& variable, Complaints& complaints, std::vector<std::string>& warnings) {
    if (known_.contains(variable) || std::ranges::find(kOthers, variable) != kOthers.end()) return;
    if (is_service_link(variable) || is_secret(variable)) return;
    // Compare without the common prefix, which makes short names look alike.
    std::vector<std::string_view> names;
    for (const std::string_view name : kOthers) names.push_back(name.substr(kPrefix.size()));
    for (const auto& [name, paths] : known_) names.push_back(std::string_view(name).substr(kPrefix.size()));
    const std::string_view near = nearest_word(names, std::string_view(variable).substr(kPrefix.size()));
    const std::string hint = near.empty() ? "; settings without a variable are set with --set PATH=VALUE"
                                          : "; did you mean " + std::string(kPrefix) + std::string(near) + "?";
    if (begins_like_a_setting(variable)) {
      complaints.add({document_.add_file(variable), 0, 0}, "unknown setting" + hint);
    } else {
      warnings.push_back("ignoring unknown environment variable " + variable + hint);
    }
  }

  // Returns true if the configuration refers to the variable as `env:NAME`, or did before a variable or flag replaced
  // that value.
  bool is_secret(std::string_view variable) const {
    for (NodeId id = 0; id < document_.size(); ++id) {
      const std::string_view value = document_.value(id);
      if (value.starts_with(kEnv) && value.substr(kEnv.size()) == variable) return true;
    }
    return std::ranges::find(replaced_secrets_, variable) != replaced_secrets_.end();
  }

  void set_flag(NodeId parent, const std::string& path, const Field& field) {
    const auto found = options_.flags.find(path);
    if (found == options_.flags.end() || field.shape == Shape::map) return;
    flags_used_.push_back(path);
    set(parent, field, found->second, std::string(kFlag) + path);
  }

  // Returns the precedence of a value's source: flags over variables over files.
  int rank(NodeId id) const {
    const std::string& file = document_.file(document_.node(id).file);
    if (file.starts_with(kFlag)) return 2;
    return document_.node(id).line == 0 && file.starts_with(kPrefix) ? 1 : 0;
  }

  // Applies flags to existing items of a list. Variables cannot name items, because their names have no brackets.
  void set_items(NodeId parent, const std::string& path, const Field& field) {
    const NodeId list = document_.find(parent, field.name);
    if (list == kNoNode) return;
    if (document_.node(list).kind == NodeKind::map) return set_item(list, path, field.fields);  // one, not a list
    std::size_t index = 0;
    for (const NodeId item : document_.children(list)) {
      const std::string place = path + "[" + std::to_string(index++) + "]";
      if (document_.node(item).kind == NodeKind::map) set_item(item, place, field.fields);
    }
  }

  void set_item(NodeId item, const std::string& path, std::span<const Field> fields) {
    remove_replaced(document_, item, mentioned(options_.flags, path + ".", fields, false));
    for (const Field& field : fields) {
      const std::string below = path_of(path, field.name);
      if (field.type != Type::section) {
        set_flag(item, below, field);
      } else {
        set_items(item, below, field);
      }
    }
  }

  // Returns the fields that are named by variables or flags with that prefix.
  static std::vector<std::string> mentioned(const Environment& values, const std::string& start,
                                            std::span<const Field> fields, bool upper_case) {
    std::vector<std::string> names;
    for (const Field& field : fields) {
      const std::string name(field.name);
      if (values.contains(start + (upper_case ? variable_name(name).substr(kPrefix.size()) : name))) {
        names.push_back(name);
      }
    }
    return names;
  }

  static bool begins(const Environment& values, const std::string& start) {
    const auto found = values.lower_bound(start);
    return found != values.end() && found->first.starts_with(start);
  }

  // Returns true if any variable or flag starts with this path. Most maps are large and not mentioned at all.
  bool mentions(std::string_view path) const {
    return begins(options_.environment, variable_name(path)) || begins(options_.flags, std::string(path));
  }

  void set_below(NodeId parent, const std::string& path, const Field& field) {
    const NodeId found = document_.find(parent, field.name);
    if (document_.is(found, NodeKind::map)) return set_section(found, path, field.fields);
    if (found != kNoNode && document_.node(found).kind != NodeKind::null) return;  // the checker complains
    Node node;
    node.kind = NodeKind::map;
    node.file = found == kNoNode ? document_.node(parent).file : document_.node(found).file;
    node.key = document_.keep(field.name);
    const NodeId made = document_.add(node);
    set_section(made, path, field.fields);
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
    // A word such as the `none` of a route's limits is no list of one.
    const bool word = field.shape == Shape::one_or_list && !field.word.empty() && value == field.word;
    if (word || (field.shape != Shape::list && field.shape != Shape::one_or_list)) return;
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
    if (const std::string_view old = document_.value(id); old.starts_with(kEnv)) {
      replaced_secrets_.emplace_back(old.substr(kEnv.size()));
    }
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
  std::vector<std::string> replaced_secrets_;  // variables in env: references of the file that were replaced
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

void overlay_paths(const Options& options, Document& document, NodeId root) {
  Overlay overlay(options, document);
  for (const Field& field : file_fields()) {
    if (field.shape == Shape::map_or_path) overlay.set_leaf(root, std::string(field.name), field);
  }
}

void overlay_values(const Options& options, Document& document, NodeId root, Complaints& complaints,
                    std::vector<std::string>& warnings) {
  Overlay overlay(options, document);
  for (const Field& field : file_fields()) {
    if (field.shape == Shape::map_or_path) overlay.know(field.name);
  }
  overlay.set_listeners(root, complaints);
  overlay.set_section(root, {}, file_fields());
  for (const std::string_view name : {"limits", "names"}) {
    overlay.set_map(root, std::string(name), *find_field(file_fields(), name));
  }
  overlay.resolve_identities(root);
  overlay.complain(complaints, warnings);
}

}  // namespace weir::config
