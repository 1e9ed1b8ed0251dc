// Finds errors in YAML text that yaml-cpp accepts or reports poorly. yaml-cpp ends an unclosed quoted scalar at the end
// of the file without an error, and lets one continue over lines that belong to other keys: a missing closing quote
// would silently swallow half a policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// An error in a text. Lines and columns count from 1, columns in bytes.
struct TextFlaw {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string sentence;
};

inline constexpr std::string_view kNeverClosed = "this quote is never closed";

// Follows a reader's events and checks every quoted scalar: it must be closed, and its continuation lines must be
// indented deeper than its entry (YAML 1.2 §7.3). If the indentation is ambiguous, assumes the smaller one, so it never
// rejects valid YAML. Linear in the text.
class YamlGuard {
 public:
  // Offsets start after the byte order mark, if there is one.
  explicit YamlGuard(std::string_view text);

  // A map or list begins at `offset`, where its anchor is if it has one. `block_map`: a map that is not in braces.
  void begin(std::size_t offset, bool block_map);
  void end();
  // Anything but a map, a list or a scalar: an alias or an empty value.
  void other();
  // A scalar: a key or a value.
  std::optional<TextFlaw> scalar(std::size_t offset, bool quoted);

  // The text before an offset.
  std::string_view before(std::size_t offset) const noexcept { return text_.substr(0, offset); }

  // Returns a better message for an error that the reader found at `offset`, if the text shows the cause.
  std::optional<TextFlaw> explain(std::size_t offset) const;

 private:
  // An open map or list. Continuation lines of a quoted scalar in it must start after `column` (from 0); -1: anywhere.
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
