#include "weir/config/reference.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/config/fields.h"

namespace weir::config {
namespace {

constexpr std::string_view kIntroduction =
    "# Configuration reference\n\n"
    "<!-- Generated: `weir config reference` prints this page. Change weir/config/fields.cc, not this file. -->\n\n"
    "Every option of the configuration file, from the table that the parser itself uses. `weir config reference` "
    "prints\n"
    "this page, `weir config schema` prints the same table as a JSON schema, and `weir config show` prints the values "
    "in\n"
    "effect. [configuration.md](configuration.md) explains the options with examples, and the\n"
    "[formats of values](configuration.md#value-formats).\n\n"
    "**Applies** says when a changed value takes effect: on a [reload](operations.md#reloading), for new connections\n"
    "after a reload, or on a restart. `NAME` is a name of your choice. `[]` is an entry of a list.\n";

// A section of the file and every place where it occurs.
struct Section {
  std::vector<std::string> paths;
  std::span<const Field> fields;
  Applies when;
};

Applies effective(const Field& field, Applies section) noexcept {
  return field.when == Applies::as_section ? section : field.when;
}

std::string option_path(const std::string& above, const Field& field) {
  std::string path = above.empty() ? std::string(field.name) : above + "." + std::string(field.name);
  if (field.shape == Shape::map || field.shape == Shape::map_or_path) path += ".NAME";
  if (field.shape == Shape::list) path += "[]";
  return path;
}

// A section that several places share is listed once, unless its changes take effect at different times.
auto find_section(std::vector<Section>& all, std::span<const Field> fields, Applies when) {
  return std::find_if(all.begin(), all.end(), [&](const Section& section) {
    return section.fields.data() == fields.data() && section.when == when;
  });
}

// Lists the section and those inside it.
void collect(const std::string& path, std::span<const Field> fields, Applies when, std::vector<Section>& all) {
  const auto known = find_section(all, fields, when);
  if (known != all.end()) {
    known->paths.push_back(path);
  } else {
    all.push_back({{path}, fields, when});
  }
  for (const Field& field : fields) {
    if (field.type == Type::section) collect(option_path(path, field), field.fields, effective(field, when), all);
  }
}

// The anchor of a heading, as GitHub makes it.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    const char lower = to_lower(c);
    if ((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_') anchor += lower;
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::string print_bound(const Field& field, std::int64_t value) {
  return field.type == Type::duration ? print_duration(Duration{value}) : std::to_string(value);
}

// The range, unless the type implies it.
std::string range_of(const Field& field) {
  const bool low = field.min != kNoMin;
  if (low && field.max != kNoMax) return ", " + print_bound(field, field.min) + " to " + print_bound(field, field.max);
  // A nanosecond is the shortest possible duration.
  if (!low || (field.type == Type::duration && field.min == 1)) return {};
  return ", at least " + print_bound(field, field.min);
}

std::string choices_of(const Field& field) {
  std::string out;
  for (const std::string_view word : split(field.choices, ' ')) {
    out.append(out.empty() ? "`" : ", `").append(word).append("`");
  }
  return out;
}

std::string type_of(const Field& field) {
  switch (field.type) {
    case Type::text:
      return "text";
    case Type::address:
      return "address";
    case Type::secret:
      return "secret";
    case Type::flag:
      return "`true` or `false`";
    case Type::integer:
      return "whole number" + range_of(field);
    case Type::duration:
      return "duration" + range_of(field);
    case Type::rate:
      return "rate";
    case Type::size:
      return "size" + range_of(field);
    case Type::choice:
      return choices_of(field);
    case Type::choice_any:
      return choices_of(field) + ", in any case";
    case Type::prefix:
      return "address or CIDR";
    case Type::instant:
      return "time, such as `2027-01-01T00:00:00Z`";
    case Type::key_source:
      return "[key source](configuration.md#keys)";
    case Type::id_format:
      return "[id format](configuration.md#ids)";
    case Type::quota:
      return "quota";
    case Type::zone:
      return "time zone, such as `Europe/London`";
    case Type::days:
      return "days, such as `mon-fri`";
    case Type::hours:
      return "hours, such as `09:00-18:00`";
    case Type::share:
      return "`1/N`";
    case Type::section:
      return "section";
  }
  return {};
}

// The type with its shape: "a list of", "one or a list", and the word that is also accepted.
std::string shape_of(const Field& field) {
  std::string type = type_of(field);
  const bool section = field.type == Type::section;
  if (!field.word.empty()) {
    type += section ? ", or its `" + std::string(field.word) + "` alone"
                    : ", or `" + std::string(field.word) + (field.word.ends_with(':') ? "NAME`" : "`");
  }
  switch (field.shape) {
    case Shape::one:
      return type;
    case Shape::list:
      return "list: " + type;
    case Shape::one_or_list:
      return "one or a list: " + type;
    case Shape::map:
      return "map from names: " + type;
    case Shape::map_or_path:
      return "map from names: " + type + "; or the path of a file";
  }
  return type;
}

std::string_view applies_text(Applies when) noexcept {
  if (when == Applies::on_restart) return "restart";
  return when == Applies::to_new_connections ? "reload, new connections" : "reload";
}

void print_row(const Section& section, const Field& field, std::vector<Section>& all, std::string& out) {
  std::string name = "`" + std::string(field.name) + "`";
  if (field.type == Type::section) {
    const auto target = find_section(all, field.fields, effective(field, section.when));
    name = "[" + name + "](#" + anchor_of(target->paths.front()) + ")";
  }
  const std::string fallback = field.required           ? "required"
                               : field.fallback.empty() ? std::string()
                                                        : "`" + std::string(field.fallback) + "`";
  out.append("| ").append(name).append(" | ").append(shape_of(field)).append(" | ").append(fallback).append(" | ");
  out.append(applies_text(effective(field, section.when))).append(" | ").append(field.doc).append(" |\n");
}

void print_section(const Section& section, std::vector<Section>& all, std::string& out) {
  out.append("\n## ").append(section.paths.front()).append("\n\n");
  for (std::size_t i = 1; i < section.paths.size(); ++i) {
    out.append(i == 1 ? "Also `" : ", `").append(section.paths[i]).append("`");
  }
  if (section.paths.size() > 1) out += ".\n\n";
  out += "| option | type | default | applies | meaning |\n|---|---|---|---|---|\n";
  for (const Field& field : section.fields) print_row(section, field, all, out);
}

}  // namespace

std::string reference() {
  std::vector<Section> all;
  collect({}, file_fields(), Applies::on_reload, all);
  all.front().paths.front() = "Top level";
  // The shortest path names a shared section: `external` rather than `limits.NAME.external`.
  const auto shorter = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
  for (Section& section : all) {
    std::iter_swap(section.paths.begin(), std::min_element(section.paths.begin(), section.paths.end(), shorter));
  }
  std::string out(kIntroduction);
  for (const Section& section : all) print_section(section, all, out);
  return out;
}

}  // namespace weir::config
