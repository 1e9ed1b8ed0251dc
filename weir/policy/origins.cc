#include <functional>
#include <string>

#include "weir/policy/amend.h"
#include "weir/policy/check.h"
#include "weir/policy/fields.h"
#include "weir/policy/settings_reader.h"

namespace weir::policy {
namespace {

// Which defaults are listed.
enum class Defaults {
  none,    // what was written, nothing else
  stated,  // those that the table states
  all,     // also "nothing"
};

class OriginList {
 public:
  explicit OriginList(const Document& document) : document_(document) {}

  // Every field of a section. `id` may be kNoNode: everything below has its default.
  void add_section(NodeId id, const std::string& path, std::span<const Field> fields, Defaults defaults) {
    for (const Field& field : fields) {
      const NodeId found = document_.find(id, field.name);
      const bool absent = found == kNoNode || is_empty(found);
      const std::string below = path.empty() ? std::string(field.name) : path + "." + std::string(field.name);
      if (field.shape == Shape::map_or_path) continue;
      if (!absent) {
        add_value(found, below, field, defaults);
      } else if (defaults == Defaults::none || (defaults == Defaults::stated && field.fallback.empty())) {
        continue;
      } else if (field.type != Type::section && field.shape != Shape::map) {
        add_default(below, field);
      } else if (field.shape == Shape::one && !is_optional(below)) {
        add_section(kNoNode, below, field.fields, defaults);
      }
    }
  }

  void add_default_listeners(const Settings& settings) {
    for (std::size_t i = 0; i < settings.listen.size(); ++i) {
      const Listener& listener = settings.listen[i];
      std::string speak;
      for (const std::string& word : listener.speak) speak += (speak.empty() ? "" : ", ") + word;
      const std::string path = "listen[" + std::to_string(i) + "]";
      settings_.push_back({path + ".address", listener.address, "default", 0});
      settings_.push_back({path + ".speak", "[" + speak + "]", "default", 0});
    }
  }

  void add_default(const std::string& path, Count value) {
    settings_.push_back({path, std::to_string(value), "default", 0});
  }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
  bool is_empty(NodeId id) const {
    const Node& node = document_.node(id);
    return node.kind == NodeKind::null || (node.kind == NodeKind::map && node.child == kNoNode);
  }

  // Sections that mean something by being there at all.
  static bool is_optional(std::string_view path) { return path == "cache_redis" || path.starts_with("external"); }

  void add_default(const std::string& path, const Field& field) {
    const bool list = field.shape == Shape::list || field.shape == Shape::one_or_list;
    std::string value = list ? "[" + std::string(field.fallback) + "]" : std::string(field.fallback);
    if (value.empty()) value = "\"\"";
    settings_.push_back({path, value, "default", 0});
  }

  std::string origin(NodeId id) const {
    const std::string where = document_.where(document_.mark(id));
    if (document_.file(document_.node(id).file) == kAmendmentName) return std::string(kAmendmentName);
    return where.starts_with("flag ") ? "flag" : where;
  }

  void add_value(NodeId id, const std::string& path, const Field& field, Defaults defaults) {
    switch (document_.node(id).kind) {
      case NodeKind::null:
        return;
      case NodeKind::map:
        if (field.shape == Shape::map) {
          for (const NodeId entry : document_.children(id)) {
            add_scalar(entry, path + "." + std::string(document_.key(entry)), field);
          }
          return;
        }
        return add_section(id, path, field.fields, defaults);
      case NodeKind::sequence:
        return add_list(id, path, field);
      case NodeKind::scalar:
        return add_scalar(id, path, field);
    }
  }

  void add_list(NodeId id, const std::string& path, const Field& field) {
    if (field.type == Type::section) {
      std::size_t index = 0;
      for (const NodeId item : document_.children(id)) {
        add_value(item, path + "[" + std::to_string(index++) + "]", field, Defaults::none);
      }
      return;
    }
    std::string value;
    for (const NodeId item : document_.children(id)) {
      value += (value.empty() ? "" : ", ") + std::string(document_.value(item));
    }
    settings_.push_back({path, "[" + value + "]", origin(id), 0});
  }

  void add_scalar(NodeId id, const std::string& path, const Field& field) {
    const std::string_view value = document_.value(id);
    if (value.empty()) {
      settings_.push_back({path, "\"\"", origin(id), 0});
    } else if (field.type == Type::secret) {
      settings_.push_back({path, "(hidden)", origin(id), std::hash<std::string_view>{}(value)});
    } else {
      const std::string_view choice = find_choice(field, value);
      settings_.push_back({path, std::string(choice.empty() ? value : choice), origin(id), 0});
    }
  }

  const Document& document_;
  std::vector<Setting> settings_;
};

}  // namespace

std::vector<Setting> list_origins(const Document& document, NodeId root, const Settings& settings,
                                  const std::vector<NamedLimit>& limits) {
  OriginList list(document);
  if (!has_listeners(document, root)) list.add_default_listeners(settings);
  list.add_section(root, "", file_fields(), Defaults::all);
  const NodeId written = document.find(root, "limits");
  for (const NamedLimit& limit : limits) {
    const NodeId entry = document.find(written, limit.name);
    if (entry == kNoNode) continue;
    list.add_section(entry, "limits." + limit.name, limit_fields(), Defaults::stated);
    const bool said = document.find(entry, "burst") != kNoNode || document.find(entry, "capacity") != kNoNode;
    if (limit.numbers && !said) list.add_default("limits." + limit.name + ".burst", limit.numbers->burst());
  }
  for (const NodeId entry : document.children(document.find(root, "names"))) {
    list.add_section(entry, "names." + std::string(document.key(entry)), name_fields(), Defaults::none);
  }
  return list.take();
}

}  // namespace weir::policy
