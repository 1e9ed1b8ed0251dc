// Helpers for reading plain-text access logs: words, quoted strings, request lines.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir::simulate {

// Parses a line from the front.
class LogText {
 public:
  explicit LogText(std::string_view text) noexcept : rest_(text) {}

  std::string_view rest() const noexcept { return rest_; }
  bool empty() const noexcept { return rest_.empty(); }

  // Takes the text up to the next space, and the space. Empty at the end.
  std::string_view word() noexcept { return until(' '); }
  // Takes the text up to that character, and the character; takes everything if there is none.
  std::string_view until(char c) noexcept {
    if (rest_.empty()) return {};
    const auto* const found = static_cast<const char*>(std::memchr(rest_.data(), c, rest_.size()));
    const std::size_t size = found == nullptr ? rest_.size() : static_cast<std::size_t>(found - rest_.data());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(found == nullptr ? size : size + 1);
    return taken;
  }
  // Takes a quoted string and the space after it; leaves escapes as they are. Returns false if there is no opening or
  // no closing quote.
  bool quoted(std::string_view& out) noexcept {
    if (!rest_.starts_with('"')) return false;
    std::size_t end = 1;
    while (true) {
      if (end >= rest_.size()) return false;
      const auto* const found = static_cast<const char*>(std::memchr(rest_.data() + end, '"', rest_.size() - end));
      if (found == nullptr) return false;
      end = static_cast<std::size_t>(found - rest_.data());
      std::size_t slashes = 0;
      while (rest_[end - 1 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 0) break;
      ++end;
    }
    out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    if (rest_.starts_with(' ')) rest_.remove_prefix(1);
    return true;
  }

 private:
  std::string_view rest_;
};

// Logs write "-" for an absent value.
inline std::string_view present(std::string_view value) noexcept {
  return value == "-" ? std::string_view{} : value;
}

struct RequestLine {
  std::string_view method;
  std::string_view target;
  std::string_view host;  // of an absolute target; empty: none
};

// Parses "GET /path HTTP/1.1" with escapes as in logs (\x22, \"). `memory` holds unescaped text.
Result<RequestLine> read_request_line(std::string_view text, std::string& memory);

// True if the text is not empty and has only characters of an IPv4 or IPv6 address.
bool looks_like_address(std::string_view text) noexcept;

// Removes the port and the brackets: "10.0.1.2:33317", "[2001:db8::1]:443".
std::string_view without_port(std::string_view address) noexcept;

}  // namespace weir::simulate
