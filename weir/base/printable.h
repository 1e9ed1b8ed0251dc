// Makes untrusted text safe for terminals.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// Returns the text with control characters (including line ends), characters that change the direction of text, and
// invalid UTF-8 escaped like \x1b.
std::string printable(std::string_view text);

}  // namespace weir
