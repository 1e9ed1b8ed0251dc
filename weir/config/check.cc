#include "weir/config/check.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/base/nearest.h"
#include "weir/base/text.h"
#include "weir/config/values.h"
#include "weir/identify/id_format.h"
#include "weir/identify/ip.h"
#include "weir/identify/quote.h"

namespace weir::config {
namespace {

std::string name_of(const Field& field) {
  return std::string(field.name);
}

// "failure_code 200 must be 400 to 599", with the value as written.
std::optional<std::string> check_range(const Field& field, std::string_view text, std::int64_t value) {
  const bool duration = field.type == Type::duration;
  const auto print = [&](std::int64_t n) { return duration ? print_duration(Duration{n}) : std::to_string(n); };
  if (value >= field.min && value <= field.max) return std::nullopt;
  const std::string start = name_of(field) + " " + std::string(text);
  if (duration && field.min == 1 && value < 1) return start + " must be longer than zero";
  if (field.max == kNoMax) return start + " must be at least " + print(field.min);
  return start + " must be " + print(field.min) + " to " + print(field.max);
}

std::optional<std::string> check_integer(const Field& field, std::string_view text, bool in_quotes) {
  if (in_quotes) return name_of(field) + " must be a whole number, not the text " + quote(text);
  const Result<std::int64_t> value = parse_integer(text);
  if (value) return check_range(field, text, *value);
  if (value.error().fault == Fault::too_large) return name_of(field) + " " + quote(text) + " does not fit 64 bits";
  return name_of(field) + " must be a whole number, not " + quote(text);
}

// For values whose parser returns a sentence: "period: duration "5" lacks a unit".
template <class T>
std::optional<std::string> check_parsed(const Field& field, const Result<T>& parsed) {
  if (parsed) return std::nullopt;
  const std::string& detail = parsed.error().detail;
  const bool says_its_name = detail.compare(0, field.name.size(), field.name) == 0;
  return says_its_name ? detail : name_of(field) + ": " + detail;
}

void refuse_duplicate(Document& document, NodeId first, NodeId second, Complaints& complaints) {
  document.node(second).refused = true;
  complaints.add_at_key(second, "key " + quote(document.key(second)) + " is written twice; the first is at " +
                                    document.where(document.key_mark(first)));
}

// The first entry before `entry` with the same key, or kNoNode.
NodeId find_duplicate(const Document& document, NodeId map, NodeId entry) {
  for (const NodeId other : document.children(map)) {
    if (other == entry) return kNoNode;
    if (document.key(other) == document.key(entry)) return other;
  }
  return kNoNode;
}

// Finds duplicates with a flat hash table, because an overrides file may have a million keys.
void check_unique_large(Document& document, NodeId map, std::size_t size, Complaints& complaints) {
  struct Slot {
    std::size_t hash = 0;
    NodeId entry = kNoNode;
  };
  std::vector<Slot> keys;
  keys.reserve(size);
  for (const NodeId entry : document.children(map)) {
    keys.push_back({std::hash<std::string_view>{}(document.key(entry)), entry});
  }
  std::vector<Slot> slots(std::bit_ceil(2 * size));
  const std::size_t mask = slots.size() - 1;
  for (std::size_t i = 0; i < size; ++i) {
    constexpr std::size_t ahead = 16;  // prefetch distance: each slot is a cache miss
    if (i + ahead < size) __builtin_prefetch(&slots[keys[i + ahead].hash & mask], 1);
    const auto [hash, entry] = keys[i];
    std::size_t at = hash & mask;
    const auto taken = [&] { return slots[at].entry != kNoNode; };
    while (taken() && (slots[at].hash != hash || document.key(slots[at].entry) != document.key(entry))) {
      at = (at + 1) & mask;
    }
    if (!taken()) {
      slots[at] = {hash, entry};
    } else {
      refuse_duplicate(document, slots[at].entry, entry, complaints);
    }
  }
}

// Finds duplicate keys. Most maps are small, and a few are very large.
void check_unique(Document& document, NodeId map, Complaints& complaints) {
  constexpr std::size_t small = 32;
  const std::size_t size = document.count(map);
  if (size > small) return check_unique_large(document, map, size, complaints);
  for (const NodeId entry : document.children(map)) {
    const NodeId first = find_duplicate(document, map, entry);
    if (first != kNoNode) refuse_duplicate(document, first, entry, complaints);
  }
}

std::string_view kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::null:
      return "nothing";
    case NodeKind::scalar:
      return "a single value";
    case NodeKind::sequence:
      return "a list";
    case NodeKind::map:
      return "a map";
  }
  return "";
}

void refuse(Document& document, NodeId id, Complaints& complaints, std::string sentence) {
  document.node(id).refused = true;
  complaints.add(id, std::move(sentence));
}

// How messages name a value: by its field, or in a map by its key.
enum class Label { field, key };

// Checks a single value, not a list or map of values.
void check_one(Document& document, NodeId id, const Field& field, Label named, Complaints& complaints) {
  const Node node = document.node(id);
  if (node.refused) return;
  const auto label = [&] { return named == Label::field ? name_of(field) : quote(document.key(id)); };
  if (field.type == Type::section) {
    const bool stands_for_section = !field.word.empty() && node.kind == NodeKind::scalar;
    if (stands_for_section || node.kind == NodeKind::null) return;
    if (node.kind == NodeKind::map) return check_section(document, id, field.fields, complaints);
    return refuse(document, id, complaints,
                  label() + " must be a map of fields, not " + std::string(kind_name(node.kind)));
  }
  if (node.kind == NodeKind::null) return refuse(document, id, complaints, label() + " has no value");
  if (node.kind != NodeKind::scalar) {
    return refuse(document, id, complaints,
                  label() + " must be a single value, not " + std::string(kind_name(node.kind)));
  }
  if (auto sentence = check_value(field, document.value(id), node.quoted)) {
    refuse(document, id, complaints, std::move(*sentence));
  }
}

void check_items(Document& document, NodeId list, const Field& field, Complaints& complaints) {
  for (const NodeId item : document.children(list)) {
    if (document.node(item).kind == NodeKind::null) {
      // An empty item has no position, so report the list's.
      document.node(item).refused = true;
      complaints.add(list, "an item of " + name_of(field) + " has no value");
    } else {
      check_one(document, item, field, Label::field, complaints);
    }
    if (document.node(item).refused) document.node(list).refused = true;
  }
}

std::vector<std::string_view> names_of(std::span<const Field> fields) {
  std::vector<std::string_view> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

}  // namespace

std::string list_choices(std::string_view choices) {
  const std::vector<std::string_view> words = split(choices, ' ');
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::optional<std::string> check_value(const Field& field, std::string_view text, bool in_quotes) {
  if (!field.word.empty() && field.word == text) return std::nullopt;
  if (field.word.ends_with(':') && text.starts_with(field.word) && text.size() > field.word.size()) return std::nullopt;
  switch (field.type) {
    case Type::secret:
      if (!has_control(text)) return std::nullopt;
      return name_of(field) + " must not have control characters";
    case Type::text:
    case Type::address:
    case Type::zone:  // looked up when it is used
    case Type::section:
      return std::nullopt;
    case Type::flag:
      if (!in_quotes && (text == "true" || text == "false")) return std::nullopt;
      return name_of(field) + " must be true or false, not " + (in_quotes ? "the text " : "") + quote(text);
    case Type::integer:
      return check_integer(field, text, in_quotes);
    case Type::duration: {
      const Result<Duration> value = parse_duration(text);
      return value ? check_range(field, text, value->count()) : check_parsed(field, value);
    }
    case Type::size: {
      const Result<std::int64_t> value = parse_size(text);
      return value ? check_range(field, text, *value) : check_parsed(field, value);
    }
    case Type::rate:
      return check_parsed(field, parse_rate(text));
    case Type::choice:
    case Type::choice_any:
      if (!find_choice(field, text).empty()) return std::nullopt;
      return name_of(field) + " must be " + list_choices(field.choices) + ", not " + quote(text);
    case Type::prefix:
      return check_parsed(field, IpPrefix::parse(text));
    case Type::instant:
      return check_parsed(field, parse_instant(text));
    case Type::key_source:
      return check_parsed(field, check_key_source(text));
    case Type::id_format:
      return check_parsed(field, IdShape::parse(text));
    case Type::quota:
      return check_parsed(field, parse_quota(text));
    case Type::days:
      return check_parsed(field, parse_days(text));
    case Type::hours:
      return check_parsed(field, parse_hours(text));
    case Type::share:
      return check_parsed(field, parse_share(text));
  }
  return std::nullopt;
}

void check_field(Document& document, NodeId id, const Field& field, Complaints& complaints) {
  if (document.node(id).refused) return;
  const NodeKind kind = document.node(id).kind;
  switch (field.shape) {
    case Shape::one:
      return check_one(document, id, field, Label::field, complaints);
    case Shape::one_or_list:
      if (kind == NodeKind::sequence) return check_items(document, id, field, complaints);
      return check_one(document, id, field, Label::field, complaints);
    case Shape::list:
      if (kind == NodeKind::null) return;
      if (kind == NodeKind::sequence) return check_items(document, id, field, complaints);
      return refuse(document, id, complaints, name_of(field) + " must be a list, not " + std::string(kind_name(kind)));
    case Shape::map:
    case Shape::map_or_path:
      if (kind == NodeKind::null) return;
      if (kind != NodeKind::map) {
        return refuse(document, id, complaints,
                      name_of(field) + " must be a map" + (field.shape == Shape::map ? "" : " or the path of a file") +
                          ", not " + std::string(kind_name(kind)));
      }
      for (const NodeId entry : document.children(id)) {
        check_one(document, entry, field, Label::key, complaints);
      }
      // After the entries, so that duplicates are checked too.
      check_unique(document, id, complaints);
      return;
  }
}

std::string did_you_mean(std::span<const std::string_view> words, std::string_view word) {
  const std::string_view near = nearest_word(words, word);
  return near.empty() ? "" : "; did you mean " + quote(near) + "?";
}

void check_section(Document& document, NodeId section, std::span<const Field> fields, Complaints& complaints) {
  std::set<std::string_view> unknown;
  for (const NodeId entry : document.children(section)) {
    const std::string_view key = document.key(entry);
    const Field* field = find_field(fields, key);
    if (field == nullptr) {
      document.node(entry).refused = true;
      if (!unknown.insert(key).second) continue;  // already reported
      const std::string hint = did_you_mean(names_of(fields), key);
      complaints.add_at_key(entry, "unknown key " + quote(key) +
                                       (hint.empty() ? "; known keys are " + join(names_of(fields), ", ") : hint));
      document.node(section).refused = true;
      continue;
    }
    check_field(document, entry, *field, complaints);
    if (document.node(entry).refused) document.node(section).refused = true;
  }
  check_unique(document, section, complaints);
  for (const Field& field : fields) {
    if (!field.required || document.find(section, field.name) != kNoNode) continue;
    complaints.add(section, name_of(field) + " is missing");
    document.node(section).refused = true;
  }
}

}  // namespace weir::config
