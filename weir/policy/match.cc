#include "weir/policy/match.h"

#include <algorithm>
#include <cstring>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/identify/path.h"

namespace weir {
namespace {

// Takes the segment at the start of `rest` off it, with the '/' before it.
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

Result<PathPattern> PathPattern::parse(std::string_view text) {
  if (!text.starts_with('/')) return refuse("path", text, "must begin with /");
  if (text.find_first_of("?#") != std::string_view::npos) {
    return refuse("path", text, "must not have a query or a fragment: only the path is matched");
  }
  PathPattern pattern;
  normalize_path(text, pattern.text_);
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
  // The rest may be nothing, not even the slash before it.
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
    if (path.is_literal()) {
      literal_[path.text()].push_back(i);
    } else {
      const std::string prefix(path.prefix());
      wild_.push_back({head_of(prefix), head_of(std::string(prefix.size(), '\xFF')), prefix, i});
    }
  }
}

const Route* RouteTable::find(const Request& request) const noexcept {
  const Route* found = nullptr;
  if (const auto same = literal_.find(request.path()); same != literal_.end()) {
    const auto first = std::ranges::find_if(
        same->second, [&](std::uint32_t i) { return routes_[i].match.fits_besides_path(request); });
    if (first != same->second.end()) found = &routes_[*first];
  }
  const std::string_view path = request.path();
  const std::uint64_t head = head_of(path);
  for (const Wild& wild : wild_) {
    if ((head & wild.mask) != wild.head || !path.starts_with(wild.prefix)) continue;
    const Route& route = routes_[wild.index];
    if (found != nullptr && found < &route) break;  // it was written first
    if (route.match.path.matches(path) && route.match.fits_besides_path(request)) return &route;
  }
  return found;
}

}  // namespace weir
