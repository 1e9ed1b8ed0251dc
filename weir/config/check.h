// Checks a Document against the table of fields.h: unknown keys, duplicate keys, wrong types, bad values. Reports every
// problem, and marks refused nodes so that later readers do not report them again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/config/document.h"
#include "weir/config/fields.h"

namespace weir::config {

// `root` is the file's node, `fields` the file's table.
void check_section(Document& document, NodeId root, std::span<const Field> fields, Complaints& complaints);

// One entry of a map or of the file: the value at `id` against its field.
void check_field(Document& document, NodeId id, const Field& field, Complaints& complaints);

// Why a text cannot be the value of a field of Shape::one, or nothing. Never quotes a secret.
std::optional<std::string> check_value(const Field& field, std::string_view text, bool quoted);

// "enforce, shadow or off".
std::string list_choices(std::string_view choices);

// `; did you mean "burst"?`, the nearest of `words` to a mistyped one; empty if none is near.
std::string did_you_mean(std::span<const std::string_view> words, std::string_view word);

}  // namespace weir::config
