#include "weir/cli/text_width.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace weir::cli {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Marks that stand on the character before them, and characters without a shape (Unicode: Mn, Me, Cf in common use).
constexpr Range kNarrow[] = {{0x0300, 0x036F}, {0x0483, 0x0489},  {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
                             {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},  {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                             {0x200B, 0x200F}, {0x2060, 0x2064},  {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
                             {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};
// Unicode's East Asian Width: W and F, in blocks.
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                           {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                           {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1B000, 0x1B2FF},
                           {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD}};

template <std::size_t N>
bool is_in(const Range (&ranges)[N], std::uint32_t point) noexcept {
  const auto* const found = std::lower_bound(std::begin(ranges), std::end(ranges), point,
                                             [](const Range& range, std::uint32_t p) { return range.last < p; });
  return found != std::end(ranges) && found->first <= point;
}

// Takes the character at the start of `rest` and returns its columns.
std::size_t take_character(std::string_view& rest) noexcept {
  const auto first = static_cast<unsigned char>(rest.front());
  std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  length = std::min(length, rest.size());
  std::uint32_t point = length == 1 ? first : first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) point = point << 6 | (static_cast<unsigned char>(rest[i]) & 0x3Fu);
  rest.remove_prefix(length);
  if (point < 0x300) return 1;
  return is_in(kNarrow, point) ? 0 : is_in(kWide, point) ? 2 : 1;
}

}  // namespace

std::size_t text_width(std::string_view text) noexcept {
  std::size_t width = 0;
  while (!text.empty()) width += take_character(text);
  return width;
}

std::string clipped(std::string_view text, std::size_t columns) {
  if (text_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::string_view rest = text;
  std::size_t kept = 0;
  for (std::size_t width = 0;;) {
    width += take_character(rest);
    if (width > columns - 1) break;
    kept = text.size() - rest.size();
  }
  return std::string(text.substr(0, kept)) + "…";
}

}  // namespace weir::cli
