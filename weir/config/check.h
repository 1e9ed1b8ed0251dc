// Checks a Document against the table in fields.h: unknown keys, duplicate keys, wrong types, bad values. Reports every
// problem and marks bad nodes as refused, so that later readers do not report them again.
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

// Returns why a text is not a valid value of a field of Shape::one; nullopt if it is. Never quotes a secret.
std::optional<std::string> check_value(const Field& field, std::string_view text, bool quoted);

// "enforce, shadow or off".
std::string list_choices(std::string_view choices);

// Returns `; did you mean "burst"?` with the word closest to `word`; empty if none is close.
std::string did_you_mean(std::span<const std::string_view> words, std::string_view word);

}  // namespace weir::config
