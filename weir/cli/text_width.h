// Measures how wide a text is on a terminal, and cuts it to fit. Texts are UTF-8 without control characters
// (printable()).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli {

// Columns on the screen: East Asian characters and most pictures take two, combining marks none.
std::size_t text_width(std::string_view text) noexcept;

// Returns the text if it fits into that many columns; otherwise its beginning and "…".
std::string clipped(std::string_view text, std::size_t columns);

}  // namespace weir::cli
