// Quotes ids for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

// Returns the id in double quotes. Shows bytes that are not printable ASCII or valid UTF-8 as \xNN and truncates a long
// id, so that a message fits a log line and cannot forge one.
std::string quoted_id(std::string_view id);

// Returns the length of the valid UTF-8 sequence at the start of `text` (RFC 3629: no surrogates, not overlong, at most
// U+10FFFF), or 0.
std::size_t utf8_sequence(std::string_view text) noexcept;

// Returns whether the text has a control character: below U+0020, or U+007F to U+009F.
bool has_control(std::string_view text) noexcept;

}  // namespace weir
