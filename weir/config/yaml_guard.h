// What yaml-cpp lets pass, or refuses without saying why, seen in the text itself. It ends a quoted text at the end of
// the file without an error, and lets one run over lines that belong to other keys: a quote somebody forgot to close
// would swallow half a policy in silence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// Something wrong in a text. Lines and columns count from 1, columns in bytes.
struct TextFlaw {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string sentence;
};

inline constexpr std::string_view kNeverClosed = "this quote is never closed";

// Follows a reader's events and looks at every quoted text: it must be closed, and its further lines must be indented
// deeper than the entry it belongs to (YAML 1.2 §7.3). Where the text leaves the indentation in doubt the guard takes
// the smaller one: it never refuses valid YAML. Linear in the text.
class YamlGuard {
 public:
  // Offsets below count from behind a byte order mark.
  explicit YamlGuard(std::string_view text);

  // A map or list begins, its anchor, if it has one, at `offset`. `block_map`: a map that is not in braces.
  void begin(std::size_t offset, bool block_map);
  void end();
  // Something that is neither a map nor a list nor a text: an alias, or nothing at all.
  void other();
  // A text, key or value.
  std::optional<TextFlaw> scalar(std::size_t offset, bool quoted);

  // The text before an offset.
  std::string_view before(std::size_t offset) const noexcept { return text_.substr(0, offset); }

  // A better sentence for an error that the reader found at `offset`, if the text shows what is wrong.
  std::optional<TextFlaw> explain(std::size_t offset) const;

 private:
  // An open map or list, and the column, from 0, that lines of a text in it must lie behind; -1: none.
  struct Level {
    std::ptrdiff_t column = -1;
    bool waits = false;  // a block map whose first key is still to come
  };

  std::size_t line_start(std::size_t offset) const noexcept;
  std::optional<std::size_t> column_behind_items(std::size_t offset) const noexcept;
  std::ptrdiff_t column_at(std::size_t offset) const noexcept;
  std::size_t skip_properties(std::size_t offset) const noexcept;
  TextFlaw flaw_at(std::size_t offset, std::string sentence) const;
  std::optional<TextFlaw> check_quoted(std::size_t opening) const;

  std::string_view text_;
  std::vector<Level> open_;
};

}  // namespace weir::config
