// What readers of access logs in plain text share: words, quoted strings, request lines.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir::simulate {

// A line that is taken apart from its front.
class LogText {
 public:
  explicit LogText(std::string_view text) noexcept : rest_(text) {}

  std::string_view rest() const noexcept { return rest_; }
  bool empty() const noexcept { return rest_.empty(); }

  // Up to the next space, which goes too. Empty at the end.
  std::string_view word() noexcept { return until(' '); }
  // Up to that character, which goes too; everything if there is none.
  std::string_view until(char c) noexcept {
    if (rest_.empty()) return {};
    const auto* const found = static_cast<const char*>(std::memchr(rest_.data(), c, rest_.size()));
    const std::size_t size = found == nullptr ? rest_.size() : static_cast<std::size_t>(found - rest_.data());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(found == nullptr ? size : size + 1);
    return taken;
  }
  // What is between two quotes at the front, and the space behind them; escapes stay as they are. False: it does not
  // begin with a quote, or none ends it.
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

// "-" is how logs write that there is nothing.
inline std::string_view present(std::string_view value) noexcept {
  return value == "-" ? std::string_view{} : value;
}

struct RequestLine {
  std::string_view method;
  std::string_view target;
  std::string_view host;  // of an absolute target; empty: it has none
};

// "GET /path HTTP/1.1" with escapes as logs write them (\x22, \"). `memory` holds what had to be unescaped.
Result<RequestLine> read_request_line(std::string_view text, std::string& memory);

// Whether the text has only characters of an IPv4 or IPv6 address, and some.
bool looks_like_address(std::string_view text) noexcept;

// "10.0.1.2:33317", "[2001:db8::1]:443": without the port and the brackets.
std::string_view without_port(std::string_view address) noexcept;

}  // namespace weir::simulate
