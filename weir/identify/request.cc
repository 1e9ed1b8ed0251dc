#include "weir/identify/request.h"

#include <algorithm>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/identify/attribute.h"
#include "weir/identify/path.h"

namespace weir {
namespace {

// Returns the host without port and final dot, in lower case: "Example.com.:8080" is "example.com". Keeps the brackets
// of an IPv6 address.
std::string_view without_port(std::string_view host) noexcept {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  host = host.substr(0, std::min(colon, host.size()));
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  return host;
}

// Returns the credentials of a scheme (RFC 9110 §11.4), or nullopt.
std::string_view credentials(std::string_view authorization, std::string_view scheme) noexcept {
  if (authorization.size() <= scheme.size() || authorization[scheme.size()] != ' ') return {};
  const bool same = std::equal(scheme.begin(), scheme.end(), authorization.begin(),
                               [](char a, char b) { return to_lower(a) == to_lower(b); });
  return same ? trim(authorization.substr(scheme.size())) : std::string_view{};
}

}  // namespace

void Request::clear() noexcept {
  attributes_ = {};
  client_.reset();
  target_ = {};
  apikey_.clear();
  method_.clear();
  host_.clear();
  path_.assign(1, '/');
  claims_.reset();
}

Result<void> Request::read(std::span<const Attribute> attributes, const TrustedProxies& trusted) {
  clear();
  if (attributes.size() > bounds::attributes_max) {
    return Error{Fault::too_large,
                 "the request has more than " + std::to_string(bounds::attributes_max) + " headers and form fields"};
  }
  attributes_ = attributes;
  std::string_view ip;
  std::string_view peer;
  for (const Attribute& attribute : attributes) {
    if (attribute.name == "ip") {
      ip = attribute.value;
    } else if (attribute.name == "peer") {
      peer = attribute.value;
    } else if (attribute.name == "path") {
      target_ = attribute.value;
    } else if (attribute.name == "method") {
      method_.assign(attribute.value);
    } else if (attribute.name == "host") {
      host_.assign(without_port(trim(attribute.value)));
    }
  }
  if (has_null(target_)) return Error{Fault::invalid, "the path contains a null character", 0, "bad_request"};
  for (char& c : method_) c = to_upper(c);
  for (char& c : host_) c = to_lower(c);
  normalize_path(target_, path_);
  find_apikey();
  return find_client(ip, peer, trusted);
}

Result<void> Request::find_client(std::string_view ip, std::string_view peer, const TrustedProxies& trusted) {
  const std::string_view given = ip.empty() ? peer : ip;
  if (given.empty()) return {};
  const bool unix = ip.empty() && peer == kUnixPeer;
  const Result<IpAddress> address = unix ? Result<IpAddress>(IpAddress::v4({})) : IpAddress::parse(given);
  if (!address) return Error{Fault::invalid, address.error().detail, 0, "bad_value"};
  if (!unix) client_ = *address;
  if (!ip.empty() || !(unix ? trusted.trusts_unix() : trusted.trusts(*address))) return {};
  forwarded_for_.clear();
  std::string_view real_ip;
  bool repeated = false;
  for (const Attribute& attribute : attributes_) {
    if (attribute.name == "header:x-forwarded-for") forwarded_for_.push_back(attribute.value);
    if (attribute.name != "header:x-real-ip") continue;
    // A proxy sets it once. If there are two, the client forged one of them, and we cannot know which.
    repeated |= !real_ip.empty();
    real_ip = attribute.value;
  }
  if (repeated) real_ip = {};
  if (unix) {
    client_ = client_behind_unix(forwarded_for_, real_ip, trusted);
  } else {
    client_ = client_ip(*address, forwarded_for_, real_ip, trusted);
  }
  return {};
}

void Request::find_apikey() {
  if (const std::string_view* key = find("header:x-api-key"); key != nullptr) apikey_ = trim(*key);
  if (!apikey_.empty()) return;
  const std::string_view* const authorization = find("header:authorization");
  if (authorization == nullptr) return;
  apikey_ = credentials(trim(*authorization), "ApiKey");
  if (apikey_.empty()) apikey_ = credentials(trim(*authorization), "Bearer");
}

const std::string_view* Request::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(attributes_, name, &Attribute::name);
  return found == attributes_.end() ? nullptr : &found->value;
}

void Request::ignore_path_case() noexcept {
  for (char& c : path_) c = to_lower(c);
}

bool Request::value_differs(std::string_view name) const noexcept {
  const std::string_view* const first = find(name);
  return first != nullptr && std::ranges::any_of(attributes_, [&](const Attribute& attribute) {
           return attribute.name == name && trim(attribute.value) != trim(*first);
         });
}

bool Request::differs(const KeySource& source) const {
  switch (source.kind) {
    case KeySource::Kind::apikey:
      return value_differs("header:x-api-key") || value_differs("header:authorization");
    case KeySource::Kind::attribute:
      return !source.name.starts_with("descriptor:") && value_differs(source.name);
    case KeySource::Kind::cookie: {
      std::optional<std::string_view> first;
      bool differ = false;
      each_cookie([&](std::string_view name, std::string_view value) {
        if (name != source.name) return;
        differ |= first && *first != value;
        if (!first) first = value;
      });
      return differ;
    }
    case KeySource::Kind::query:
      return query_field_differs(query_of(target_), source.name);
    default:
      return false;
  }
}

bool Request::has(std::string_view name, std::string_view value) const noexcept {
  return std::ranges::any_of(attributes_, [&](const Attribute& attribute) {
    return attribute.name == name && trim(attribute.value) == value;
  });
}

std::string_view Request::token(std::string_view header, std::string_view cookie_name) const noexcept {
  if (header.empty() && !cookie_name.empty()) return cookie(cookie_name).value_or(std::string_view{});
  std::string_view token;
  const std::string_view wanted = header.empty() ? std::string_view("authorization") : header;
  for (const Attribute& attribute : attributes_) {
    if (!attribute.name.starts_with("header:") || attribute.name.substr(7) != wanted) continue;
    const std::string_view value = trim(attribute.value);
    const std::string_view bearer = credentials(value, "Bearer");
    const std::string_view found = header.empty() || !bearer.empty() ? bearer : value;
    if (!token.empty() && token != found) return {};
    token = found;
  }
  return token.empty() && !cookie_name.empty() ? cookie(cookie_name).value_or(std::string_view{}) : token;
}

template <class Visit>
void Request::each_cookie(Visit visit) const {
  for (const Attribute& attribute : attributes_) {
    if (attribute.name != "header:cookie") continue;
    std::string_view rest = attribute.value;
    while (!rest.empty()) {
      const std::string_view pair = rest.substr(0, std::min(rest.find(';'), rest.size()));
      rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos) continue;
      visit(trim(pair.substr(0, equals)), trim(pair.substr(equals + 1)));
    }
  }
}

std::optional<std::string_view> Request::cookie(std::string_view name) const noexcept {
  std::optional<std::string_view> found;
  each_cookie([&](std::string_view called, std::string_view value) {
    if (!found && called == name) found = value;
  });
  return found;
}

std::string_view Request::plain_value(const KeySource& source) const noexcept {
  switch (source.kind) {
    case KeySource::Kind::apikey:
      return apikey_;
    case KeySource::Kind::attribute: {
      const std::string_view* const value = find(source.name);
      return value == nullptr ? std::string_view{} : trim(*value);
    }
    case KeySource::Kind::cookie:
      return cookie(source.name).value_or(std::string_view{});
    case KeySource::Kind::path:
      return path_;
    case KeySource::Kind::segment: {
      const std::string_view segment = path_segment(path_, source.segment);
      return segment.empty() && source.segment == 1 ? std::string_view("root") : segment;
    }
    case KeySource::Kind::method:
      return method_;
    case KeySource::Kind::host:
      return host_;
    case KeySource::Kind::global:
      return "global";
    case KeySource::Kind::jwt:
      return claims_ == nullptr ? std::string_view{} : std::string_view((*claims_)[source.segment]);
    case KeySource::Kind::ip:
    case KeySource::Kind::query:
      break;
  }
  return {};
}

bool Request::append_part(const KeySource& source, int ipv6_prefix, std::string& id) const {
  if (source.kind == KeySource::Kind::ip) return append_value(source, ipv6_prefix, id);
  if (source.kind == KeySource::Kind::query) {
    std::string value;
    if (!append_value(source, ipv6_prefix, value)) return false;
    weir::append_part(id, value);
    return true;
  }
  const std::string_view value = plain_value(source);
  if (value.empty()) return false;
  weir::append_part(id, value);
  return true;
}

bool Request::append_value(const KeySource& source, int ipv6_prefix, std::string& id) const {
  if (source.kind == KeySource::Kind::ip) {
    if (!client_) return false;
    const bool whole = client_->is_v4() || ipv6_prefix >= client_->width();
    id += whole ? client_->print() : IpPrefix::of(*client_, ipv6_prefix).print();
    return true;
  }
  const std::size_t before = id.size();
  if (source.kind == KeySource::Kind::query) {
    find_query_field(query_of(target_), source.name, id);
  } else {
    id += plain_value(source);
  }
  return id.size() > before;
}

}  // namespace weir
