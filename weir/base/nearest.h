// "Did you mean": finds the known word nearest to a mistyped one.
#pragma once

#include <span>
#include <string_view>

namespace weir {

// Returns one of `words`, or an empty view if none is near.
std::string_view nearest_word(std::span<const std::string_view> words, std::string_view word);

}  // namespace weir
