#include "weir/simulate/log_text.h"

#include <algorithm>

#include "weir/base/ascii.h"
#include "weir/base/text.h"

namespace weir::simulate {
namespace {

void unescape(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const bool hex = text[i + 1] == 'x' && i + 3 < text.size();
    const int high = hex ? hex_value(text[i + 2]) : -1;
    const int low = hex ? hex_value(text[i + 3]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 3;
    } else {
      out += text[++i];
    }
  }
}

bool is_method(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_letter(c) || c == '-'; });
}

}  // namespace

Result<RequestLine> read_request_line(std::string_view text, std::string& memory) {
  const auto refuse = [&] { return Error{Fault::invalid, "request " + quote(text) + " is not METHOD TARGET VERSION"}; };
  const std::size_t first = text.find(' ');
  const std::size_t last = text.rfind(' ');
  if (first == std::string_view::npos || last == first) return refuse();
  RequestLine line{text.substr(0, first), text.substr(first + 1, last - first - 1), {}};
  if (!is_method(line.method) || line.target.empty() || !text.substr(last + 1).starts_with("HTTP/")) return refuse();
  if (std::memchr(line.target.data(), '\\', line.target.size()) != nullptr) {
    unescape(line.target, memory);
    line.target = memory;
  }
  if (line.target.starts_with("http://") || line.target.starts_with("https://")) {
    const std::size_t host = line.target.find("//") + 2;
    const std::size_t path = std::min(line.target.find_first_of("/?", host), line.target.size());
    line.host = line.target.substr(host, path - host);
    line.target = path == line.target.size() ? std::string_view("/") : line.target.substr(path);
  }
  return line;
}

bool looks_like_address(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return hex_value(c) >= 0 || c == '.' || c == ':'; });
}

std::string_view without_port(std::string_view address) noexcept {
  if (address.starts_with('[')) return address.substr(1, std::min(address.find(']'), address.size()) - 1);
  const std::size_t colon = address.rfind(':');
  // HAProxy writes IPv6 addresses without brackets, but always with the port.
  return colon == std::string_view::npos ? address : address.substr(0, colon);
}

}  // namespace weir::simulate
