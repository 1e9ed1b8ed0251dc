// Text for terminals.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// Returns the text as it is, but with control characters (line ends too), characters that change the direction of text,
// and bytes that are not UTF-8 written as \x1b.
std::string printable(std::string_view text);

}  // namespace weir
