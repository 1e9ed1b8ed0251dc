#include "weir/identify/path.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weir/base/ascii.h"

namespace weir {
namespace {

bool is_unreserved(char c) noexcept {
  return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

// Allowed unescaped in a segment (RFC 3986 §3.3, pchar).
bool is_plain(char c) noexcept {
  return is_unreserved(c) || std::string_view("!$&'()*+,;=:@").find(c) != std::string_view::npos;
}

// "http://host" of the absolute form (RFC 9112 §3.2.2).
std::string_view without_authority(std::string_view target) noexcept {
  if (target.starts_with('/')) return target;
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos || target.find('/') < scheme) return target;
  const std::size_t path = target.find('/', scheme + 3);
  return path == std::string_view::npos ? std::string_view{} : target.substr(path);
}

void append_segment(std::string_view segment, std::string& out) {
  if (std::all_of(segment.begin(), segment.end(), is_plain)) {
    out += segment;
    return;
  }
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const std::optional<char> byte = segment[i] == '%' ? percent_escape(segment.substr(i)) : std::nullopt;
    if (segment[i] == '%' && !byte) {
      out += "%25";  // otherwise the next bytes, once decoded, could form an escape with it
    } else if (!byte && is_plain(segment[i])) {
      out += segment[i];
    } else if (!byte) {
      append_percent_escape(segment[i], out);
    } else if (is_unreserved(*byte)) {
      out += *byte;
      i += 2;
    } else {
      append_percent_escape(*byte, out);
      i += 2;
    }
  }
}

void append_decoded(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<char> byte = text[i] == '%' ? percent_escape(text.substr(i)) : std::nullopt;
    out += byte ? *byte : text[i] == '+' ? ' ' : text[i];
    if (byte) i += 2;
  }
}

}  // namespace

void normalize_path(std::string_view target, std::string& out) {
  out.clear();
  std::string_view rest = target.substr(0, std::min(target.find_first_of("?#"), target.size()));
  rest = without_authority(rest);
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view whole = rest.substr(0, std::min(slash, rest.size()));
    const std::string_view segment = whole.substr(0, std::min(whole.find(';'), whole.size()));
    rest = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    if (segment.empty()) continue;
    const std::size_t before = out.size();
    out += '/';
    append_segment(segment, out);
    const std::string_view written = std::string_view(out).substr(before + 1);
    const bool up = written == "..";
    if (!up && written != ".") continue;
    out.resize(before);
    if (up) out.resize(std::min(out.rfind('/'), out.size()));
  }
  if (out.empty()) out += '/';
}

bool has_null(std::string_view target) noexcept {
  const std::string_view path = target.substr(0, std::min(target.find_first_of("?#"), target.size()));
  return path.find("%00") != std::string_view::npos || path.find('\0') != std::string_view::npos;
}

std::string_view path_segment(std::string_view path, std::size_t n) noexcept {
  std::size_t at = 1;
  for (; n > 1; --n) {
    const std::size_t slash = path.find('/', at);
    if (slash == std::string_view::npos) return {};
    at = slash + 1;
  }
  return path.substr(std::min(at, path.size()), std::min(path.find('/', at), path.size()) - std::min(at, path.size()));
}

std::string_view query_of(std::string_view target) noexcept {
  target = target.substr(0, std::min(target.find('#'), target.size()));
  const std::size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view{} : target.substr(mark + 1);
}

bool find_query_field(std::string_view query, std::string_view name, std::string& out) {
  const std::size_t before = out.size();
  while (!query.empty()) {
    const std::string_view field = query.substr(0, std::min(query.find('&'), query.size()));
    query.remove_prefix(std::min(field.size() + 1, query.size()));
    const std::size_t equals = std::min(field.find('='), field.size());
    append_decoded(field.substr(0, equals), out);
    const bool found = std::string_view(out).substr(before) == name;
    out.resize(before);
    if (!found) continue;
    append_decoded(field.substr(std::min(equals + 1, field.size())), out);
    return true;
  }
  return false;
}

void each_form_field(std::string_view content, const std::function<bool(std::string name, std::string value)>& visit) {
  while (!content.empty()) {
    const std::string_view field = content.substr(0, std::min(content.find('&'), content.size()));
    content.remove_prefix(std::min(field.size() + 1, content.size()));
    if (field.empty()) continue;
    const std::size_t equals = std::min(field.find('='), field.size());
    std::string name;
    std::string value;
    append_decoded(field.substr(0, equals), name);
    append_decoded(field.substr(std::min(equals + 1, field.size())), value);
    if (!visit(std::move(name), std::move(value))) return;
  }
}

bool query_field_differs(std::string_view query, std::string_view name) {
  std::optional<std::string> first;
  bool differs = false;
  each_form_field(query, [&](const std::string& found, std::string value) {
    if (found != name) return true;
    if (first) {
      differs = value != *first;
    } else {
      first = std::move(value);
    }
    return !differs;
  });
  return differs;
}

}  // namespace weir
