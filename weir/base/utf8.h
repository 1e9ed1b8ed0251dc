// Finds invalid UTF-8, such as clients send in ids, before it gets into JSON.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

// The character U+FFFD, which stands for bytes that are not UTF-8.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Returns the length of the valid UTF-8 sequence at the start of `text` (RFC 3629: no surrogates, no overlong forms),
// or 0. REQUIRES: `text` is not empty.
constexpr std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return follows(1) ? 2 : 0;
  if (first < 0xF0) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first > 0xF4) return 0;
  const unsigned low = first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
  return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
}

}  // namespace weir
