#include "weir/config/schema.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/config/fields.h"

namespace weir::config {
namespace {

// Writes JSON, indented by two spaces per level.
class Writer {
 public:
  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!first_) line();
    out_ += bracket;
    first_ = false;
  }
  void item() {
    if (!first_) out_ += ',';
    line();
    first_ = false;
  }
  void key(std::string_view name) {
    item();
    text(name);
    out_ += ": ";
  }
  void text(std::string_view value) {
    out_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') out_ += '\\';
      out_ += c;
    }
    out_ += '"';
  }
  void raw(std::string_view value) { out_ += value; }
  void field(std::string_view name, std::string_view value) {
    key(name);
    text(value);
  }
  void field_raw(std::string_view name, std::string_view value) {
    key(name);
    raw(value);
  }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  void line() {
    out_ += '\n';
    out_.append(2 * static_cast<std::size_t>(depth_), ' ');
  }

  std::string out_;
  int depth_ = 0;
  bool first_ = true;
};

void write_fields(Writer& json, std::span<const Field> fields);

void write_section(Writer& json, const Field& field) {
  json.open('{');
  json.field_raw("type", "[\"object\", \"null\"]");
  write_fields(json, field.fields);
  json.close('}');
}

// A choice in any case is a pattern, letter by letter.
std::string any_case(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const bool upper = c >= 'A' && c <= 'Z';
    const char lower = upper ? static_cast<char>(c + ('a' - 'A')) : c;
    out += std::string("[") + lower + static_cast<char>(lower - ('a' - 'A')) + "]";
  }
  return out;
}

void write_pattern(Writer& json, std::string_view pattern) {
  json.field("type", "string");
  json.field("pattern", pattern);
}

void write_choices(Writer& json, const Field& field) {
  const std::vector<std::string_view> words = split(field.choices, ' ');
  if (field.type == Type::choice_any) {
    std::string pattern;
    for (const std::string_view word : words) pattern += (pattern.empty() ? "" : "|") + any_case(word);
    return write_pattern(json, "^(" + pattern + ")$");
  }
  json.key("enum");
  json.raw("[");
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) json.raw(", ");
    json.text(words[i]);
    // Without quotes YAML reads a version as a number.
    if (words[i].find_first_not_of("0123456789.") == std::string_view::npos) json.raw(", " + std::string(words[i]));
  }
  json.raw("]");
}

void write_integer(Writer& json, const Field& field) {
  json.field("type", "integer");
  if (field.min != kNoMin) json.field_raw("minimum", std::to_string(field.min));
  if (field.max != kNoMax) json.field_raw("maximum", std::to_string(field.max));
}

// The keywords of one scalar.
void write_scalar(Writer& json, const Field& field) {
  switch (field.type) {
    case Type::text:
    case Type::address:
    case Type::secret:
      return json.field_raw("type", "[\"string\", \"number\", \"boolean\"]");
    case Type::flag:
      return json.field("type", "boolean");
    case Type::integer:
      return write_integer(json, field);
    case Type::duration:
      return write_pattern(json, "^([0-9]+(\\.[0-9]+)?(ns|us|\u00b5s|\u03bcs|ms|s|m|h|d|w))+$");
    case Type::rate:
      return write_pattern(json, "^[0-9]+(\\.[0-9]+)?( +per +| */ *)[a-z]+$");
    case Type::size:
      json.field_raw("type", "[\"integer\", \"string\"]");
      return json.field("pattern", "^[0-9]+(K|M|G|KiB|MiB|GiB)?$");
    case Type::choice:
    case Type::choice_any:
      return write_choices(json, field);
    case Type::quota:
      return write_pattern(json, "^[0-9]+( +per +| */ *)(hour|day|week|month)$");
    case Type::hours:
      return write_pattern(json, "^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$");
    case Type::share:
      return write_pattern(json, "^1/[1-9][0-9]*$");
    case Type::instant:
      return write_pattern(json, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{3})?Z$");
    case Type::key_source:
      return write_pattern(
          json, "^(ip|apikey|path|method|host|global|path:[1-9][0-9]*|(header|cookie|query|form|descriptor|jwt):.+)$");
    case Type::prefix:
    case Type::id_format:
    case Type::zone:
    case Type::days:
      return json.field("type", "string");
    case Type::section:
      return;
  }
}

// One value of the field, whatever its shape.
void write_one(Writer& json, const Field& field) {
  const bool alternative = !field.word.empty();
  if (field.type == Type::section && !alternative) return write_section(json, field);
  json.open('{');
  if (!alternative) {
    write_scalar(json, field);
    return json.close('}');
  }
  json.key("anyOf");
  json.open('[');
  json.item();
  if (field.type == Type::section) {
    write_section(json, field);
    json.item();
    json.raw("{\"type\": \"string\"}");
  } else {
    json.open('{');
    write_scalar(json, field);
    json.close('}');
    json.item();
    const bool prefix = field.word.ends_with(':');
    json.raw(prefix ? "{\"type\": \"string\", \"pattern\": \"^" + std::string(field.word) + ".+$\"}"
                    : "{\"const\": \"" + std::string(field.word) + "\"}");
  }
  json.close(']');
  json.close('}');
}

void write_list(Writer& json, const Field& field) {
  json.open('{');
  json.field_raw("type", field.shape == Shape::list ? "[\"array\", \"null\"]" : "\"array\"");
  json.key("items");
  write_one(json, field);
  json.close('}');
}

void write_map(Writer& json, const Field& field) {
  json.open('{');
  json.field_raw("type", "[\"object\", \"null\"]");
  json.key("additionalProperties");
  write_one(json, field);
  json.close('}');
}

void write_default(Writer& json, const Field& field) {
  if (field.fallback.empty()) return;
  const bool bare = (field.type == Type::integer && field.fallback != field.word) || field.type == Type::flag;
  if (field.shape == Shape::one) {
    return bare ? json.field_raw("default", field.fallback) : json.field("default", field.fallback);
  }
  json.key("default");
  json.raw("[");
  bool first = true;
  for (const std::string_view item : split(field.fallback, ',')) {
    if (!std::exchange(first, false)) json.raw(", ");
    json.text(item);
  }
  json.raw("]");
}

// A field of any shape, with its sentence and its default.
void write_field(Writer& json, const Field& field) {
  json.open('{');
  json.field("description", field.doc);
  write_default(json, field);
  const bool either = field.shape == Shape::one_or_list || field.shape == Shape::map_or_path;
  json.key(either ? "anyOf" : "allOf");
  json.open('[');
  json.item();
  if (field.shape == Shape::one || field.shape == Shape::one_or_list) write_one(json, field);
  if (field.shape == Shape::one_or_list) json.item();
  if (field.shape == Shape::list || field.shape == Shape::one_or_list) write_list(json, field);
  if (field.shape == Shape::map || field.shape == Shape::map_or_path) write_map(json, field);
  if (field.shape == Shape::map_or_path) {
    json.item();
    json.raw("{\"type\": \"string\", \"minLength\": 1}");
  }
  json.close(']');
  json.close('}');
}

void write_fields(Writer& json, std::span<const Field> fields) {
  json.key("properties");
  json.open('{');
  std::string required;
  for (const Field& field : fields) {
    json.key(field.name);
    write_field(json, field);
    if (field.required) required += (required.empty() ? "\"" : ", \"") + std::string(field.name) + "\"";
  }
  json.close('}');
  json.field_raw("additionalProperties", "false");
  if (!required.empty()) json.field_raw("required", "[" + required + "]");
}

}  // namespace

std::string schema() {
  Writer json;
  json.open('{');
  json.field("$schema", "https://json-schema.org/draft/2020-12/schema");
  json.field("title", "Weir configuration");
  json.field_raw("type", "[\"object\", \"null\"]");
  write_fields(json, file_fields());
  json.close('}');
  return json.take();
}

}  // namespace weir::config
