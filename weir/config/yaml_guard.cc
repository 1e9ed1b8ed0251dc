#include "weir/config/yaml_guard.h"

#include <algorithm>

namespace weir::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr bool is_break(char c) noexcept {
  return c == '\n' || c == '\r';
}

constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t';
}

// YAML 1.2 §7.4.2: a longer key must be written after a question mark.
constexpr std::size_t kPlainKeyBytesMax = 1024;

}  // namespace

YamlGuard::YamlGuard(std::string_view text) : text_(text) {
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

void YamlGuard::begin(std::size_t offset, bool block_map) {
  other();
  open_.push_back({column_at(offset), block_map});
}

void YamlGuard::end() {
  if (!open_.empty()) open_.pop_back();
}

void YamlGuard::other() {
  if (!open_.empty()) open_.back().waits = false;
}

std::size_t YamlGuard::line_start(std::size_t offset) const noexcept {
  while (offset > 0 && !is_break(text_[offset - 1])) --offset;
  return offset;
}

TextFlaw YamlGuard::flaw_at(std::size_t offset, std::string sentence) const {
  const std::string_view before = text_.substr(0, offset);
  const std::size_t start = before.rfind('\n') + 1;  // 0 if there is none
  return {static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1),
          static_cast<std::uint32_t>(offset - start + 1), std::move(sentence)};
}

// Returns the column of `offset` if only spaces and list dashes precede it on its line ("- - key"); otherwise nullopt.
std::optional<std::size_t> YamlGuard::column_behind_items(std::size_t offset) const noexcept {
  std::size_t start = offset;
  const auto is_item = [&](std::size_t i) { return text_[i] == '-' && text_[i + 1] == ' '; };
  while (start > 0 && (text_[start - 1] == ' ' || is_item(start - 1))) --start;
  if (start > 0 && !is_break(text_[start - 1])) return std::nullopt;
  return offset - start;
}

// Text that starts here must be indented deeper than the innermost block map, and than the list dash right before it.
std::ptrdiff_t YamlGuard::column_at(std::size_t offset) const noexcept {
  const std::ptrdiff_t around = open_.empty() ? -1 : open_.back().column;
  const std::optional<std::size_t> own = offset < text_.size() ? column_behind_items(offset) : std::nullopt;
  const std::size_t dash = own ? text_.substr(offset - *own, *own).rfind('-') : std::string_view::npos;
  return dash == std::string_view::npos ? around : std::max(around, static_cast<std::ptrdiff_t>(dash));
}

// Skips "&anchor" and "!", and the spaces, line breaks and comments after them.
std::size_t YamlGuard::skip_properties(std::size_t offset) const noexcept {
  while (offset < text_.size() && (text_[offset] == '&' || text_[offset] == '!')) {
    while (offset < text_.size() && !is_blank(text_[offset]) && !is_break(text_[offset])) ++offset;
    while (offset < text_.size() && (is_blank(text_[offset]) || is_break(text_[offset]) || text_[offset] == '#')) {
      const bool comment = text_[offset] == '#';
      ++offset;
      while (comment && offset < text_.size() && !is_break(text_[offset])) ++offset;
    }
  }
  return offset;
}

std::optional<TextFlaw> YamlGuard::scalar(std::size_t offset, bool quoted) {
  if (offset >= text_.size()) return std::nullopt;
  if (!open_.empty() && open_.back().waits) {
    // All keys of a block map are in the column of the first.
    open_.back().waits = false;
    if (const auto own = column_behind_items(offset)) open_.back().column = static_cast<std::ptrdiff_t>(*own);
  }
  if (!quoted) return std::nullopt;
  const std::size_t opening = skip_properties(offset);
  // A block scalar ("|") also counts as quoted, but its indentation ends it.
  const bool in_quotes = opening < text_.size() && (text_[opening] == '"' || text_[opening] == '\'');
  return in_quotes ? check_quoted(opening) : std::nullopt;
}

std::optional<TextFlaw> YamlGuard::check_quoted(std::size_t opening) const {
  const char quote = text_[opening];
  const std::ptrdiff_t least = column_at(opening);
  std::size_t outside = 0;  // the first line that is not indented as it must be
  for (std::size_t i = opening + 1; i < text_.size(); ++i) {
    if (text_[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote;
      if (doubled) {
        ++i;
        continue;
      }
      if (outside == 0) return std::nullopt;
      const TextFlaw line = flaw_at(outside, "");
      return flaw_at(opening, "the text quoted from here runs on to line " + std::to_string(line.line) +
                                  ", which is not indented deeper than its key: is a closing quote missing?");
    }
    if (text_[i] == '\\' && quote == '"' && i + 1 < text_.size() && !is_break(text_[i + 1])) {
      ++i;
    } else if (is_break(text_[i])) {
      std::size_t next = i + 1;
      while (next < text_.size() && is_blank(text_[next])) ++next;
      const bool empty = next == text_.size() || is_break(text_[next]);
      if (!empty && outside == 0 && static_cast<std::ptrdiff_t>(next - i - 1) <= least) outside = next;
    }
  }
  return flaw_at(opening, std::string(kNeverClosed));
}

std::optional<TextFlaw> YamlGuard::explain(std::size_t offset) const {
  if (offset > text_.size()) return std::nullopt;
  const std::size_t start = line_start(offset);
  const std::string_view line = text_.substr(start, std::min(text_.find_first_of("\r\n", start), text_.size()) - start);
  const std::string_view indent = line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
  if (const std::size_t tab = indent.find('\t'); tab != std::string_view::npos) {
    return flaw_at(start + tab, "not valid YAML: a tab must not indent a line; indent it by spaces");
  }
  // yaml-cpp reports this error at the colon.
  const std::string_view before = line.substr(0, std::min(offset - start, line.size()));
  const bool at_colon = before.size() < line.size() && line[before.size()] == ':';
  const std::size_t space = before.find_last_of(" \t");
  const std::size_t key = space == std::string_view::npos ? 0 : space + 1;
  if (at_colon && before.size() - key > kPlainKeyBytesMax) {
    return flaw_at(start + key, "a key longer than " + std::to_string(kPlainKeyBytesMax) +
                                    " bytes must be written on a line of its own behind \"? \", its value on the next "
                                    "behind \": \"");
  }
  return std::nullopt;
}

}  // namespace weir::config
