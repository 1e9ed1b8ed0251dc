#include "weir/proxy/fields.h"

#include <algorithm>
#include <array>

#include "weir/base/ascii.h"
#include "weir/wire/http1.h"

namespace weir::proxy {
namespace {

// Compares with a name in lower case; '_' counts as '-'.
bool is_spelling_of(std::string_view name, std::string_view lower) noexcept {
  return name.size() == lower.size() && std::equal(name.begin(), name.end(), lower.begin(),
                                                   [](char a, char b) { return (a == '_' ? '-' : to_lower(a)) == b; });
}

// The same name but for '-' and '_'.
bool is_other_spelling(std::string_view name, std::string_view of) noexcept {
  const auto plain = [](char c) { return c == '_' ? '-' : to_lower(c); };
  return name.size() == of.size() && !same_word(name, of) &&
         std::equal(name.begin(), name.end(), of.begin(), [&](char a, char b) { return plain(a) == plain(b); });
}

bool is_other_spelling_of_any(std::string_view name, std::span<const std::string> names) noexcept {
  bool found = false;
  for (const std::string& one : names) {
    if (same_word(name, one)) return false;
    found = found || is_other_spelling(name, one);
  }
  return found;
}

bool tells_of_clients(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "x-forwarded-";
  if (name.size() > kPrefix.size() && is_spelling_of(name.substr(0, kPrefix.size()), kPrefix)) return true;
  return is_spelling_of(name, "x-real-ip") || is_spelling_of(name, "forwarded");
}

bool is_hop_by_hop(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 10> kNames = {
      "connection", "keep-alive",         "proxy-connection",    "transfer-encoding", "te",
      "upgrade",    "proxy-authenticate", "proxy-authorization", "http2-settings",    "content-length"};
  return std::ranges::any_of(kNames, [&](std::string_view one) { return same_word(one, name); });
}

// Whether some Connection field names it.
bool is_named(std::span<const HttpHeader> headers, std::string_view name) noexcept {
  return std::ranges::any_of(headers, [&](const HttpHeader& header) {
    return header.name.size() == 10 && same_word(header.name, "connection") && lists_word(header.value, name);
  });
}

bool has_connection(std::span<const HttpHeader> headers) noexcept {
  return std::ranges::any_of(headers, [](const HttpHeader& header) {
    return header.name.size() == 10 && same_word(header.name, "connection");
  });
}

bool is_rate_header(std::string_view name) noexcept {
  constexpr std::string_view kOld = "x-ratelimit-";
  constexpr std::string_view kNew = "ratelimit";
  if (name.size() > kOld.size() && same_word(name.substr(0, kOld.size()), kOld)) return true;
  if (name.size() < kNew.size() || !same_word(name.substr(0, kNew.size()), kNew)) return false;
  return name.size() == kNew.size() || name[kNew.size()] == '-';
}

}  // namespace

void keep_request_fields(const RequestHead& head, bool trusted, std::span<const std::string> decisive, FieldList& out) {
  const std::span<const HttpHeader> headers = head.headers.all();
  const bool names_fields = has_connection(headers);
  for (const HttpHeader& header : headers) {
    const std::string_view name = header.name;
    if (is_hop_by_hop(name) || same_word(name, "host") || same_word(name, "expect")) continue;
    if (!trusted && tells_of_clients(name)) continue;
    // Weir writes these; a second spelling would be taken for one of them.
    if (is_other_spelling(name, "x-forwarded-for") || is_other_spelling(name, "x-request-id")) continue;
    if (is_other_spelling_of_any(name, decisive)) continue;
    if (names_fields && is_named(headers, name)) continue;
    out.push_back(header);
  }
}

void write_request_fields(std::span<const HttpHeader> kept, const ClientFacts& facts, std::string& out) {
  std::string forwarded_for;
  bool has_proto = false;
  bool has_host = false;
  for (const HttpHeader& header : kept) {
    const std::string_view name = header.name;
    if (same_word(name, "x-request-id")) continue;
    if (same_word(name, "x-forwarded-for")) {
      if (!header.value.empty()) forwarded_for.append(forwarded_for.empty() ? "" : ", ").append(header.value);
      continue;
    }
    has_proto = has_proto || same_word(name, "x-forwarded-proto");
    has_host = has_host || same_word(name, "x-forwarded-host");
    write_field(name, header.value, out);
  }
  if (!facts.peer.empty()) forwarded_for.append(forwarded_for.empty() ? "" : ", ").append(facts.peer);
  if (!forwarded_for.empty()) write_field("X-Forwarded-For", forwarded_for, out);
  if (!has_proto) write_field("X-Forwarded-Proto", facts.scheme, out);
  if (!has_host && !facts.host.empty()) write_field("X-Forwarded-Host", facts.host, out);
  write_field("X-Request-Id", facts.request_id, out);
}

void write_response_fields(const ResponseHead& head, bool has_rate_headers, std::string& out) {
  const std::span<const HttpHeader> headers = head.headers.all();
  const bool names_fields = has_connection(headers);
  for (const HttpHeader& header : headers) {
    const std::string_view name = header.name;
    if (is_hop_by_hop(name) || same_word(name, "x-request-id")) continue;
    if (has_rate_headers && is_rate_header(name)) continue;
    if (names_fields && is_named(headers, name)) continue;
    write_field(name, header.value, out);
  }
}

std::string connection_options(std::span<const HttpHeader> headers) {
  std::string options;
  for (const HttpHeader& header : headers) {
    if (same_word(header.name, "connection")) options.append(header.value).append(1, ',');
  }
  return options;
}

std::vector<HttpHeader> keep_trailers(std::span<const HttpHeader> trailers, std::string_view options,
                                      bool has_rate_headers) {
  std::vector<HttpHeader> kept;
  for (const HttpHeader& field : trailers) {
    const std::string_view name = field.name;
    if (is_hop_by_hop(name) || same_word(name, "host") || same_word(name, "expect")) continue;
    if (tells_of_clients(name) || is_spelling_of(name, "x-request-id")) continue;
    if (has_rate_headers && is_rate_header(name)) continue;
    if (!lists_word(options, name)) kept.push_back(field);
  }
  return kept;
}

std::string_view usable_request_id(const RequestHead& head) noexcept {
  const HttpHeader* const field = head.headers.find("x-request-id");
  if (field == nullptr || field->value.empty() || field->value.size() > bounds::request_id_bytes_max) return {};
  const bool plain = std::ranges::all_of(
      field->value, [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == ':' || c == '-'; });
  return plain ? field->value : std::string_view{};
}

bool takes_trailers(const RequestHead& head) noexcept {
  return std::ranges::any_of(head.headers.all(), [](const HttpHeader& header) {
    return header.name.size() == 2 && same_word(header.name, "te") && lists_word(header.value, "trailers");
  });
}

std::string_view host_of(const RequestHead& head) noexcept {
  const std::string_view target = head.target;
  if (target.starts_with('/') || target == "*") return head.host;
  const std::size_t scheme = target.find("://");
  if (scheme == target.npos) return head.host;
  const std::string_view rest = target.substr(scheme + 3);
  return rest.substr(0, std::min(rest.find_first_of("/?"), rest.size()));
}

std::string_view origin_form(std::string_view method, std::string_view target) noexcept {
  if (target.starts_with('/') || target == "*") return target;
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos) return target;
  const std::size_t path = target.find_first_of("/?", scheme + 3);
  if (path != std::string_view::npos) return target.substr(path);
  return method == "OPTIONS" ? std::string_view("*") : std::string_view("/");  // RFC 9112 §3.2.4
}

}  // namespace weir::proxy
