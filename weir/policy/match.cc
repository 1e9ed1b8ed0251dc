#include "weir/policy/match.h"

#include <algorithm>
#include <cstring>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/identify/path.h"

namespace weir {
namespace {

// Takes the first segment off `rest`, with the '/' before it.
std::string_view take_segment(std::string_view& rest) noexcept {
  rest.remove_prefix(1);
  const std::string_view segment = rest.substr(0, std::min(rest.find('/'), rest.size()));
  rest.remove_prefix(segment.size());
  return segment;
}

// The first eight bytes, padded with zeros.
std::uint64_t head_of(std::string_view text) noexcept {
  std::uint64_t head = 0;
  if (!text.empty()) std::memcpy(&head, text.data(), std::min(text.size(), sizeof head));
  return head;
}

Error refuse(std::string_view what, std::string_view text, std::string_view rule) {
  return Error{Fault::invalid, std::string(what) + " " + quote(text) + " " + std::string(rule)};
}

}  // namespace

Result<PathPattern> PathPattern::parse(std::string_view text, bool ignore_case) {
  if (!text.starts_with('/')) return refuse("path", text, "must begin with /");
  if (text.find_first_of("?#") != std::string_view::npos) {
    return refuse("path", text, "must not have a query or a fragment: only the path is matched");
  }
  PathPattern pattern;
  normalize_path(text, pattern.text_);
  pattern.ignores_case_ = ignore_case;
  if (ignore_case) pattern.text_ = to_lower(pattern.text_);
  pattern.literal_ = true;
  for (std::string_view rest = pattern.text_; !rest.empty();) {
    const std::string_view segment = take_segment(rest);
    if (segment.find('*') == std::string_view::npos) continue;
    pattern.literal_ = false;
    if (segment == "**" && !rest.empty()) return refuse("path", text, "must end with its **, which is the rest");
    if (segment != "*" && segment != "**") {
      return refuse("path", text, "has a * beside other characters: * stands for a whole segment, ** for the rest");
    }
  }
  return pattern;
}

std::string_view PathPattern::prefix() const noexcept {
  const std::string_view text = text_;
  const std::size_t star = text.find('*');
  if (star == std::string_view::npos) return text;
  // `**` may match nothing, not even the slash before it.
  return text.substr(0, text.substr(star).starts_with("**") ? star - 1 : star);
}

bool PathPattern::matches(std::string_view path) const noexcept {
  if (literal_) return path == text_;
  std::string_view pattern = text_;
  while (!pattern.empty()) {
    const std::string_view wanted = take_segment(pattern);
    if (wanted == "**") return true;
    if (path.empty()) return false;
    const std::string_view segment = take_segment(path);
    if (wanted == "*" ? segment.empty() : segment != wanted) return false;
  }
  return path.empty();
}

Result<HostPattern> HostPattern::parse(std::string_view text) {
  HostPattern pattern;
  pattern.text_ = to_lower(text);
  const std::string_view name = std::string_view(pattern.text_).substr(text.starts_with("*.") ? 2 : 0);
  if (text == "*") return pattern;
  if (name.empty()) return refuse("host", text, "must name a host");
  if (name.find('*') != std::string_view::npos) {
    return refuse("host", text, "may have one *, alone or as *. at the start");
  }
  const auto beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (std::ranges::any_of(name, beyond_ascii)) {
    return refuse("host", text, "must be written in ASCII, as requests write it: xn--…");
  }
  if (name.starts_with('.') || name.ends_with('.') || name.find("..") != std::string_view::npos) {
    return refuse("host", text, "has an empty label: no request's host has one");
  }
  const bool bracketed = name.starts_with('[') && name.ends_with(']');
  if ((!bracketed && name.find(':') != std::string_view::npos) || name.find_first_of("/ ") != std::string_view::npos) {
    return refuse("host", text, "must be a name or an address without a port");
  }
  return pattern;
}

bool HostPattern::matches(std::string_view host) const noexcept {
  if (text_.empty()) return true;
  if (text_ == "*") return !host.empty();
  if (!text_.starts_with('*')) return host == text_;
  const std::string_view behind = std::string_view(text_).substr(1);
  return host.size() > behind.size() && host.ends_with(behind) && !host.starts_with('.');
}

bool Match::fits_besides_path(const Request& request) const noexcept {
  if (!methods.empty() && std::ranges::find(methods, request.method()) == methods.end()) return false;
  if (!host.matches(request.host())) return false;
  return std::ranges::all_of(headers, [&](const auto& header) { return request.has(header.first, header.second); });
}

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {
  for (std::uint32_t i = 0; i < routes_.size(); ++i) {
    const PathPattern& path = routes_[i].match.path;
    ignores_case_ |= path.ignores_case();
    if (path.is_literal()) {
      (path.ignores_case() ? literal_lower_ : literal_)[path.text()].push_back(i);
    } else {
      const std::string prefix(path.prefix());
      wild_.push_back({head_of(prefix), head_of(std::string(prefix.size(), '\xFF')), prefix, i});
    }
  }
}

const Route* RouteTable::first_of(const Literals& literals, std::string_view path,
                                  const Request& request) const noexcept {
  const auto same = literals.find(path);
  if (same == literals.end()) return nullptr;
  const auto first =
      std::ranges::find_if(same->second, [&](std::uint32_t i) { return routes_[i].match.fits_besides_path(request); });
  return first == same->second.end() ? nullptr : &routes_[*first];
}

const Route* RouteTable::find(const Request& request) const noexcept {
  const std::string_view path = request.path();
  const std::string lower = ignores_case_ ? to_lower(path) : std::string();
  const Route* found = first_of(literal_, path, request);
  if (ignores_case_) {
    const Route* const other = first_of(literal_lower_, lower, request);
    if (other != nullptr && (found == nullptr || other < found)) found = other;
  }
  const std::uint64_t head = head_of(path);
  const std::uint64_t lower_head = head_of(lower);
  for (const Wild& wild : wild_) {
    const Route& route = routes_[wild.index];
    const bool any_case = ignores_case_ && route.match.path.ignores_case();
    const std::string_view asked = any_case ? std::string_view(lower) : path;
    if (((any_case ? lower_head : head) & wild.mask) != wild.head || !asked.starts_with(wild.prefix)) continue;
    if (found != nullptr && found < &route) break;  // it comes first in the configuration
    if (route.match.path.matches(asked) && route.match.fits_besides_path(request)) return &route;
  }
  return found;
}

}  // namespace weir
