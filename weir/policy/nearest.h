// "did you mean": the known word a mistyped one is nearest to.
#pragma once

#include <span>
#include <string_view>

#include "weir/policy/fields.h"

namespace weir::policy {

// Empty if no word is near. A result is one of `words`.
std::string_view nearest_word(std::span<const std::string_view> words, std::string_view word);
std::string_view nearest(std::span<const Field> fields, std::string_view name);

}  // namespace weir::policy
