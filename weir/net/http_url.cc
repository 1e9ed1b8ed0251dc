#include "weir/net/http_url.h"

#include <algorithm>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/text.h"

namespace weir {
namespace {

struct SchemeName {
  HttpUrl::Scheme scheme;
  std::string_view start;
  std::string_view port;
};

constexpr SchemeName kSchemes[] = {{HttpUrl::Scheme::http, "http://", ":80"},
                                   {HttpUrl::Scheme::https, "https://", ":443"},
                                   {HttpUrl::Scheme::h2, "h2://", ":80"}};

// "host", "host:80", "[::1]", "[::1]:80".
bool has_port(std::string_view authority) noexcept {
  const std::size_t bracket = authority.rfind(']');
  return authority.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
}

}  // namespace

Result<HttpUrl> HttpUrl::parse(std::string_view text) {
  const auto refuse = [&](std::string_view rule) {
    return Error{Fault::invalid, "URL " + quote(text) + " " + std::string(rule)};
  };
  const auto* const found = std::ranges::find_if(
      kSchemes, [&](const SchemeName& one) { return to_lower(text.substr(0, one.start.size())) == one.start; });
  if (found == std::end(kSchemes)) return refuse("must begin with http://, https:// or h2://");
  if (std::ranges::any_of(text, [](char c) { return c <= ' ' || c >= 0x7f; }))
    return refuse("must not have spaces, control characters or bytes beyond ASCII");
  std::string_view rest = text.substr(found->start.size());
  if (rest.find('?') != rest.npos) return refuse("must not have a query");
  if (rest.find('#') != rest.npos) return refuse("must not have a fragment");
  const std::string_view authority = rest.substr(0, std::min(rest.find('/'), rest.size()));
  if (authority.find('@') != authority.npos) return refuse("must not have user info");
  rest.remove_prefix(authority.size());
  HttpUrl url;
  url.scheme = found->scheme;
  url.authority = to_lower(authority);
  Result<Target> target = Target::parse(has_port(authority) ? url.authority : url.authority + std::string(found->port));
  if (!target || !target->path.empty()) return refuse("must name a host, with a port from 1 to 65535 or without one");
  if (target->port == 0) return refuse("must not have port 0");
  url.target = std::move(*target);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  url.path = rest;
  return url;
}

std::string HttpUrl::print() const {
  const auto* const found = std::ranges::find(kSchemes, scheme, &SchemeName::scheme);
  return std::string(found->start) + authority + path;
}

}  // namespace weir
