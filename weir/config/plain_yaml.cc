#include "weir/config/plain_yaml.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir::config {
namespace {

constexpr bool is_word_start(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Characters of a plain scalar that have no meaning in YAML. Keys may also hold ':' and ','.
constexpr bool is_word(char c) noexcept {
  return is_word_start(c) || c == '.' || c == '_' || c == '-' || c == '/';
}

// yaml-cpp rejects very long keys; let it report them.
constexpr std::size_t kKeyBytesMax = 512;

bool is_null(std::string_view word) {
  return word == "null" || word == "Null" || word == "NULL";
}

// One pass over the lines. Every take_ function returns false if the text is outside the subset.
class PlainReader {
 public:
  PlainReader(std::string_view text, TreeBuilder& builder) : text_(text), builder_(builder) {}

  bool read() {
    bool any = false;
    while (next_line()) {
      if (rest_.front() == ' ') return false;
      if (!any) builder_.begin(NodeKind::map, line_, column());
      any = true;
      if (!take_entry()) return false;
    }
    if (any) builder_.end();
    return true;
  }

 private:
  // Moves to the next line that is neither blank nor a comment. Returns false at the end of the text.
  bool next_line() {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      line_text_ = text_.substr(at_, end - at_);
      rest_ = line_text_;
      at_ = end + 1;
      ++line_;
      const std::size_t first = line_text_.find_first_not_of(' ');
      if (first != std::string_view::npos && line_text_[first] != '#') return true;
    }
    return false;
  }

  std::uint32_t column() const { return static_cast<std::uint32_t>(line_text_.size() - rest_.size() + 1); }

  // Returns the indentation of the next line that is neither blank nor a comment; 0 at the end.
  std::size_t peek_indent() const {
    for (std::size_t at = at_; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      const std::string_view line = text_.substr(at, end - at);
      const std::size_t first = line.find_first_not_of(' ');
      if (first != std::string_view::npos && line[first] != '#') return first;
      at = end + 1;
    }
    return 0;
  }

  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  // The end of the line, or a comment, which must follow a space.
  bool take_end() {
    const bool spaced = rest_.starts_with(' ');
    skip_spaces();
    return rest_.empty() || (spaced && rest_.front() == '#');
  }

  // "key:".
  bool take_key(bool in_flow) {
    if (rest_.empty() || !is_word_start(rest_.front())) return false;
    std::size_t size = 1;
    const auto ends = [&] { return rest_[size] == ':' && (size + 1 == rest_.size() || rest_[size + 1] == ' '); };
    while (size < rest_.size() && !ends()) {
      const bool fits = is_word(rest_[size]) || (!in_flow && (rest_[size] == ':' || rest_[size] == ','));
      if (!fits || size > kKeyBytesMax) return false;
      ++size;
    }
    if (size >= rest_.size() || is_null(rest_.substr(0, size))) return false;
    builder_.scalar(line_, column(), rest_.substr(0, size), false);
    rest_.remove_prefix(size + 1);
    return true;
  }

  bool take_word() {
    if (rest_.empty() || !is_word_start(rest_.front())) return false;
    std::size_t size = 1;
    while (size < rest_.size() && is_word(rest_[size])) ++size;
    if (is_null(rest_.substr(0, size))) return false;
    builder_.scalar(line_, column(), rest_.substr(0, size), false);
    rest_.remove_prefix(size);
    return true;
  }

  // "{count: 600, period: 180m}"
  bool take_flow_map() {
    builder_.begin(NodeKind::map, line_, column());
    rest_.remove_prefix(1);
    skip_spaces();
    while (!rest_.starts_with('}')) {
      if (!take_key(true)) return false;
      skip_spaces();
      if (!take_word()) return false;
      skip_spaces();
      if (rest_.starts_with('}')) break;
      if (!rest_.starts_with(',')) return false;
      rest_.remove_prefix(1);
      skip_spaces();
      if (rest_.starts_with('}')) return false;
    }
    rest_.remove_prefix(1);
    builder_.end();
    return true;
  }

  // The lines below a key, all with the same indentation.
  bool take_block_map(std::size_t indent) {
    bool any = false;
    while (peek_indent() == indent) {
      next_line();
      rest_.remove_prefix(indent);
      if (!any) builder_.begin(NodeKind::map, line_, column());
      any = true;
      if (!take_key(false)) return false;
      skip_spaces();
      if (!take_word() || !take_end()) return false;
    }
    builder_.end();
    // A line with any other indentation than 0 is outside the subset.
    return peek_indent() == 0;
  }

  bool take_entry() {
    if (!take_key(false)) return false;
    const bool bare = take_end();
    if (bare) {
      const std::size_t indent = peek_indent();
      return indent > 0 && take_block_map(indent);
    }
    const bool taken = rest_.starts_with('{') ? take_flow_map() : take_word();
    return taken && take_end() && peek_indent() == 0;
  }

  std::string_view text_;
  TreeBuilder& builder_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 0;
  std::string_view line_text_;
  std::string_view rest_;  // of the line
};

}  // namespace

bool read_plain_yaml(std::string_view text, TreeBuilder& builder) {
  // In YAML a carriage return alone ends a line, even in a comment. Leave such files to yaml-cpp.
  if (text.find('\r') != std::string_view::npos) return false;
  return PlainReader(text, builder).read();
}

}  // namespace weir::config
