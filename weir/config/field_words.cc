// The words of the table: lists in one text, choices, names.
#include <algorithm>

#include "weir/base/ascii.h"
#include "weir/config/fields.h"

namespace weir::config {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  std::string out;
  for (const std::string_view part : parts) out.append(out.empty() ? "" : separator).append(part);
  return out;
}

std::string_view find_choice(const Field& field, std::string_view text) {
  for (const std::string_view word : split(field.choices, ' ')) {
    if (word == text || (field.type == Type::choice_any && equals_ignoring_case(word, text))) return word;
  }
  return {};
}

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace weir::config
