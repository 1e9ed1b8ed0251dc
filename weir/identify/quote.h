// How an id is written into an error sentence.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

// The id in double quotes. Bytes that are not printable ASCII or part of valid UTF-8 are shown as \xNN, and a long id
// is cut, so that a sentence fits a log line and cannot forge one.
std::string quoted_id(std::string_view id);

// The length of the valid UTF-8 sequence at the start of `text` (RFC 3629: no surrogates, nothing overlong, nothing
// past U+10FFFF), or 0 if there is none.
std::size_t utf8_sequence(std::string_view text) noexcept;

// Whether the text has a control character: below U+0020, or U+007F to U+009F.
bool has_control(std::string_view text) noexcept;

}  // namespace weir
