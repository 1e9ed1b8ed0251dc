#include <functional>
#include <string>

#include "weir/policy/check.h"
#include "weir/policy/fields.h"
#include "weir/policy/settings_reader.h"

namespace weir::policy {
namespace {

class OriginList {
 public:
  explicit OriginList(const Document& document) : document_(document) {}

  // Every field of a section. `id` may be kNoNode: everything below has its default.
  void add_section(NodeId id, const std::string& path, std::span<const Field> fields, bool defaults) {
    for (const Field& field : fields) {
      const NodeId found = document_.find(id, field.name);
      const bool absent = found == kNoNode || document_.node(found).kind == NodeKind::null;
      const std::string below = path.empty() ? std::string(field.name) : path + "." + std::string(field.name);
      if (field.shape == Shape::map_or_path) continue;
      if (absent && field.type == Type::section && field.shape == Shape::one && defaults && !is_optional(below)) {
        add_section(kNoNode, below, field.fields, true);
      } else if (absent && field.type != Type::section && defaults && field.shape != Shape::map) {
        add_default(below, field);
      } else if (!absent) {
        add_value(found, below, field, defaults);
      }
    }
  }

  // Entries of a map, only what was written.
  void add_entries(NodeId map, std::string_view name, std::span<const Field> fields) {
    for (const NodeId entry : document_.children(map)) {
      add_section(entry, std::string(name) + "." + std::string(document_.key(entry)), fields, false);
    }
  }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
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
    return where.starts_with("flag ") ? "flag" : where;
  }

  void add_value(NodeId id, const std::string& path, const Field& field, bool defaults) {
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
        add_value(item, path + "[" + std::to_string(index++) + "]", field, false);
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

std::vector<Setting> list_origins(const Document& document, NodeId root) {
  OriginList list(document);
  list.add_section(root, "", file_fields(), true);
  list.add_entries(document.find(root, "limits"), "limits", limit_fields());
  list.add_entries(document.find(root, "names"), "names", name_fields());
  return list.take();
}

}  // namespace weir::policy
