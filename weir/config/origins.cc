#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "weir/base/text.h"
#include "weir/config/amend.h"
#include "weir/config/check.h"
#include "weir/config/environment.h"
#include "weir/config/fields.h"
#include "weir/config/listen.h"
#include "weir/config/settings_reader.h"
#include "weir/config/values.h"
#include "weir/identify/ip.h"

namespace weir::config {
namespace {

// Which defaults are listed.
enum class Defaults {
  none,    // only what was written
  stated,  // those with a value in the table
  all,     // also empty ones
};

bool is_list(const Field& field) {
  return field.shape == Shape::list || field.shape == Shape::one_or_list;
}

std::vector<std::string> split_default(const Field& field) {
  const std::vector<std::string_view> items = split(field.fallback, ',');
  return {items.begin(), items.end()};
}

// Returns Setting::meaning for a checked value.
std::string meaning_of(const Field& field, const std::string& text) {
  const auto number = [&](const auto& value) { return value ? std::to_string(*value) : text; };
  switch (field.type) {
    case Type::secret:
      return text.empty() ? text : std::to_string(std::hash<std::string>{}(text));
    case Type::duration: {
      const Result<Duration> value = parse_duration(text);
      return value ? std::to_string(value->count()) : text;
    }
    case Type::size:
      return number(parse_size(text));
    case Type::integer:
      return number(parse_integer(text));
    case Type::share:
      return number(parse_share(text));
    case Type::prefix: {
      const Result<IpPrefix> value = IpPrefix::parse(text);
      return value ? value->print() : text;
    }
    case Type::choice:
    case Type::choice_any:
      return std::string(find_choice(field, text));
    case Type::address: {
      const Result<std::string> value = canonical_address(text);
      return value ? *value : text;
    }
    default:
      return text;
  }
}

std::string meaning_of(const Field& field, const std::vector<std::string>& items) {
  std::vector<std::string> all;
  for (const std::string& item : items) all.push_back(meaning_of(field, item));
  if (!field.order_matters) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  std::string out;
  for (const std::string& item : all) out += item + "\n";
  return out;
}

class OriginList {
 public:
  explicit OriginList(const Document& document) : document_(document) {}

  // Lists every field of a section. If `id` is kNoNode, all fields have their defaults.
  void add_section(NodeId id, const std::string& path, std::span<const Field> fields, Defaults defaults) {
    for (const Field& field : fields) {
      const NodeId found = document_.find(id, field.name);
      const bool absent = found == kNoNode || is_empty(found);
      const std::string below = path.empty() ? std::string(field.name) : path + "." + std::string(field.name);
      if (field.shape == Shape::map_or_path) continue;
      const bool was_live = live_;
      if (field.when != Applies::as_section) live_ = field.when != Applies::on_restart;
      if (!absent) {
        add_value_of(found, below, field, defaults);
      } else if (defaults == Defaults::all || (defaults == Defaults::stated && !field.fallback.empty())) {
        add_absent(below, field, defaults);
      }
      live_ = was_live;
    }
  }

  void add_default_listeners(const Settings& settings) {
    const std::span<const Field> fields = find_field(file_fields(), "listen")->fields;
    live_ = false;
    for (std::size_t i = 0; i < settings.listen.size(); ++i) {
      const Listener& listener = settings.listen[i];
      const std::string path = "listen[" + std::to_string(i) + "]";
      put_one(path + ".address", *find_field(fields, "address"), listener.address, "default");
      put_list(path + ".speak", *find_field(fields, "speak"), listener.speak, "default");
    }
    live_ = true;
  }

  void add_default(const std::string& path, const Field& field, Count value) {
    put_one(path, field, std::to_string(value), "default");
  }

  // Sets Setting::is_part for the settings that follow.
  void parts(bool are_parts) { are_parts_ = are_parts; }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
  bool is_empty(NodeId id) const {
    const Node& node = document_.node(id);
    return node.kind == NodeKind::null || (node.kind == NodeKind::map && node.child == kNoNode);
  }

  void add_absent(const std::string& path, const Field& field, Defaults defaults) {
    if (field.type == Type::section) {
      if (field.shape == Shape::one && !field.means_by_presence) add_section(kNoNode, path, field.fields, defaults);
    } else if (is_list(field)) {
      put_list(path, field, split_default(field), "default");
    } else if (field.shape != Shape::map) {
      put_one(path, field, std::string(field.fallback), "default");
    }
  }

  std::string origin(NodeId id) const {
    const std::string& file = document_.file(document_.node(id).file);
    if (file == kAmendmentName) return std::string(kAmendmentName);
    if (file == kNoVariable) return "default";
    const std::string where = document_.where(document_.mark(id));
    return where.starts_with(kFlag) ? std::string(kFlag.substr(0, kFlag.size() - 1)) : where;
  }

  // Access lists are compared entry by entry, services that decide limits setting by setting.
  void add_value_of(NodeId id, const std::string& path, const Field& field, Defaults defaults) {
    const bool were_parts = are_parts_;
    if (field.compared_whole) are_parts_ = true;
    if (field.name == "external") are_parts_ = false;
    add_value(id, path, field, defaults);
    are_parts_ = were_parts;
  }

  void add_value(NodeId id, const std::string& path, const Field& field, Defaults defaults) {
    switch (document_.node(id).kind) {
      case NodeKind::null:
        return;
      case NodeKind::map:
        if (field.shape == Shape::map) {
          for (const NodeId entry : document_.children(id)) {
            const std::string below = path + "." + std::string(document_.key(entry));
            if (field.type == Type::section) {
              add_section(entry, below, field.fields, Defaults::none);
            } else {
              add_scalar(entry, below, field);
            }
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
    std::vector<std::string> items;
    for (const NodeId item : document_.children(id)) items.emplace_back(document_.value(item));
    put_list(path, field, std::move(items), origin(id));
  }

  void add_scalar(NodeId id, const std::string& path, const Field& field) {
    put_one(path, field, std::string(document_.value(id)), origin(id));
  }

  void put_one(const std::string& path, const Field& field, std::string text, std::string from) {
    Setting setting{path, std::move(text), std::move(from)};
    setting.meaning = is_list(field) ? meaning_of(field, std::vector{setting.value}) : meaning_of(field, setting.value);
    if (setting.value.empty()) {
      setting.value = "\"\"";
    } else if (field.type == Type::secret) {
      setting.value = "(hidden)";
    } else if (const std::string_view choice = find_choice(field, setting.value); !choice.empty()) {
      setting.value = choice;
    }
    put(std::move(setting), field);
  }

  void put_list(const std::string& path, const Field& field, std::vector<std::string> items, std::string from) {
    Setting setting{path, {}, std::move(from), true, std::move(items)};
    setting.meaning = meaning_of(field, setting.items);
    for (std::string& item : setting.items) {
      if (field.type == Type::secret && !item.empty()) item = "(hidden)";
    }
    for (const std::string& item : setting.items) setting.value += (setting.value.empty() ? "" : ", ") + item;
    setting.value = "[" + setting.value + "]";
    put(std::move(setting), field);
  }

  void put(Setting setting, const Field& field) {
    const std::string usual =
        is_list(field) ? meaning_of(field, split_default(field)) : meaning_of(field, std::string(field.fallback));
    // cache_redis has an effect even with the default endpoints, so they never count as a default.
    setting.is_default = setting.meaning == usual && setting.path != "cache_redis.endpoints";
    setting.is_part = are_parts_;
    setting.is_live = live_;
    settings_.push_back(std::move(setting));
  }

  const Document& document_;
  std::vector<Setting> settings_;
  bool are_parts_ = false;
  bool live_ = true;
};

// Hides access.deny[3].id if ids of the limit access.deny[3].limit are hidden.
void hide_listed_ids(const std::vector<NamedLimit>& limits, std::vector<Setting>& all) {
  constexpr std::string_view kLimitEnd = "].limit";
  constexpr std::string_view kIdEnd = "].id";
  std::set<std::string> secret;
  for (const Setting& setting : all) {
    if (!setting.path.starts_with("access.") || !setting.path.ends_with(kLimitEnd)) continue;
    const auto named = [&](const NamedLimit& limit) { return limit.name == setting.value; };
    const auto limit = std::ranges::find_if(limits, named);
    if (limit == limits.end() || !limit->hides_ids()) continue;
    secret.insert(setting.path.substr(0, setting.path.size() - kLimitEnd.size()) + std::string(kIdEnd));
  }
  for (Setting& setting : all) {
    if (secret.contains(setting.path)) setting.value = "(hidden)";
  }
}

}  // namespace

std::vector<Setting> list_origins(const Document& document, NodeId root, const Settings& settings,
                                  const std::vector<NamedLimit>& limits) {
  OriginList list(document);
  if (!has_listeners(document, root)) list.add_default_listeners(settings);
  list.add_section(root, "", file_fields(), Defaults::all);
  list.parts(true);
  const NodeId written = document.find(root, "limits");
  for (const NamedLimit& limit : limits) {
    const NodeId entry = document.find(written, limit.name);
    if (entry == kNoNode) continue;
    list.add_section(entry, "limits." + limit.name, limit_fields(), Defaults::stated);
    const bool has_numbers = document.find(entry, "burst") != kNoNode || document.find(entry, "capacity") != kNoNode;
    if (limit.numbers && !has_numbers) {
      list.add_default("limits." + limit.name + ".burst", *find_field(limit_fields(), "burst"), limit.numbers->burst());
    }
  }
  for (const NodeId entry : document.children(document.find(root, "names"))) {
    list.add_section(entry, "names." + std::string(document.key(entry)), name_fields(), Defaults::none);
  }
  std::vector<Setting> all = list.take();
  hide_listed_ids(limits, all);
  return all;
}

}  // namespace weir::config
