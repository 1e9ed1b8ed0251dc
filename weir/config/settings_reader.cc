#include "weir/config/settings_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/fields.h"
#include "weir/config/values.h"

namespace weir::config {
namespace {

Given read_given(const Document& document, NodeId section, const Field& field) {
  const NodeId id = document.find(section, field.name);
  const bool none = id == kNoNode || document.node(id).refused || document.node(id).kind == NodeKind::null;
  Given given{field, std::string(none ? field.fallback : document.value(id)), {}};
  if (field.shape == Shape::one) return given;
  if (!none && document.node(id).kind == NodeKind::sequence) {
    for (const NodeId item : document.children(id)) given.items.emplace_back(document.value(item));
  } else if (field.type == Type::secret) {
    given.items = {given.text};  // may contain a comma
  } else {
    for (const std::string_view item : split(given.text, ',')) given.items.emplace_back(item);
  }
  if (field.type == Type::secret) std::erase(given.items, "");
  return given;
}

// Fills the struct that `into` points to with a section's values; with all defaults if `section` is kNoNode.
void fill_section(const Document& document, NodeId section, std::span<const Field> fields, void* into) {
  for (const Field& field : fields) {
    if (field.member.set != nullptr) field.member.set(read_given(document, section, field), into);
    if (field.member.open == nullptr) continue;
    const NodeId id = document.find(section, field.name);
    if (field.shape == Shape::one || (document.is(id, NodeKind::map))) {
      fill_section(document, id, field.fields, field.member.open(into));
      continue;
    }
    if (!document.is(id, NodeKind::sequence)) continue;
    for (const NodeId item : document.children(id)) {
      if (!document.node(item).refused) fill_section(document, item, field.fields, field.member.open(into));
    }
  }
}

}  // namespace

void assign(const Given& given, std::string& to) {
  to = given.text;
}

void assign(const Given& given, std::vector<std::string>& to) {
  to = given.items;
}

void assign(const Given& given, bool& to) {
  to = given.text == "true";
}

void assign(const Given& given, int& to) {
  to = static_cast<int>(parse_integer(given.text).value());
}

void assign(const Given& given, std::int64_t& to) {
  if (given.text == given.field.word) {
    to = 0;  // `threads: auto`
  } else if (given.field.type == Type::size) {
    to = parse_size(given.text).value();
  } else if (given.field.type == Type::share) {
    to = parse_share(given.text).value();
  } else {
    to = parse_integer(given.text).value();
  }
}

void assign(const Given& given, Duration& to) {
  to = parse_duration(given.text).value();
}

std::size_t choice_index(const Given& given) {
  const std::vector<std::string_view> words = split(given.field.choices, ' ');
  return static_cast<std::size_t>(std::ranges::find(words, find_choice(given.field, given.text)) - words.begin());
}

Duration default_idle_timeout(const std::vector<std::string>& speak) {
  const bool resp = std::ranges::find(speak, "resp") != speak.end();
  return resp ? Duration::zero() : bounds::http_idle_time_max;
}

std::vector<Listener> default_listeners() {
  const auto listener = [](std::string address, std::vector<std::string> speak) {
    Listener made;
    made.address = std::move(address);
    made.idle_timeout = default_idle_timeout(speak);
    made.speak = std::move(speak);
    return made;
  };
  return {listener("127.0.0.1:8080", {"http", "grpc"}), listener("127.0.0.1:6380", {"resp"}),
          listener("127.0.0.1:9090", {"admin"})};
}

bool has_listeners(const Document& document, NodeId root) {
  const NodeId listen = document.find(root, "listen");
  return listen != kNoNode && document.node(listen).kind != NodeKind::null;
}

Settings read_settings(const Document& document, NodeId root) {
  Settings settings;
  fill_section(document, root, file_fields(), &settings);
  if (!has_listeners(document, root)) settings.listen = default_listeners();
  const NodeId cache = document.find(root, "cache_redis");
  settings.has_cache_redis = document.is(cache, NodeKind::map) && document.node(cache).child != kNoNode;
  return settings;
}

}  // namespace weir::config
