#include "weir/identify/quote.h"

#include "weir/base/ascii.h"

namespace weir {
namespace {

constexpr std::size_t kShownBytes = 128;

unsigned char at(std::string_view text, std::size_t i) noexcept {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

std::size_t utf8_sequence(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const unsigned char first = at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(text, i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = at(text, 1);
  if (first == 0xe0 && second < 0xa0) return 0;  // overlong
  if (first == 0xed && second > 0x9f) return 0;  // surrogates
  if (first == 0xf0 && second < 0x90) return 0;  // overlong
  if (first == 0xf4 && second > 0x8f) return 0;  // past U+10FFFF
  return length;
}

bool has_control(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = at(text, i);
    if (byte < 0x20 || byte == 0x7f) return true;
    if (byte == 0xc2 && i + 1 < text.size() && at(text, i + 1) >= 0x80 && at(text, i + 1) < 0xa0) return true;
  }
  return false;
}

std::string quoted_id(std::string_view id) {
  std::string out = "\"";
  std::size_t i = 0;
  while (i < id.size() && i < kShownBytes) {
    const std::size_t length = utf8_sequence(id.substr(i));
    const bool c1_control = length == 2 && at(id, i) == 0xc2 && at(id, i + 1) < 0xa0;
    if (length == 0 || c1_control || at(id, i) < 0x20 || at(id, i) == 0x7f) {
      out += "\\x";
      append_hex(at(id, i), out);
      i += 1;
      continue;
    }
    if (id[i] == '"' || id[i] == '\\') out += '\\';
    out += id.substr(i, length);
    i += length;
  }
  if (i < id.size()) out += "…";
  out += '"';
  return out;
}

}  // namespace weir
