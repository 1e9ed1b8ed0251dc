#include "weir/wire/http.h"

#include "weir/base/ascii.h"
#include "weir/wire/http_fields.h"

namespace weir {

const HttpHeader* HttpHeaders::find(std::string_view name) const noexcept {
  for (const HttpHeader& header : all()) {
    if (same_word(header.name, name)) return &header;
  }
  return nullptr;
}

// CONNECT is not supported, so there is no authority form.
HttpProblem split_target(RequestHead& out) noexcept {
  constexpr HttpProblem kBad{400, "the request target is neither a path nor an http URL"};
  constexpr HttpProblem kForbidden{400, "the request target is empty or has a forbidden character"};
  std::string_view rest = out.target;
  if (rest.empty() || !all_are(rest, in_target)) return kForbidden;
  if (rest == "*") {
    if (out.method != "OPTIONS") return {400, "the request target * is for OPTIONS only"};
    out.path = rest;
    return {};
  }
  if (out.method == "CONNECT") return {405, "CONNECT is not supported"};
  if (rest.front() != '/') {
    const std::size_t scheme = rest.find("://");
    if (scheme == rest.npos) return kBad;
    if (!same_word(rest.substr(0, scheme), "http") && !same_word(rest.substr(0, scheme), "https")) return kBad;
    rest.remove_prefix(scheme + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
    if (authority.empty() || !all_are(authority, in_host)) return kBad;
    rest.remove_prefix(authority.size());
  }
  out.path = take_until(rest, '?');
  if (out.path.empty()) out.path = "/";
  out.query = rest;
  // Browsers send it unescaped in a query. In a path, some servers treat it as a slash.
  if (out.path.find('\\') != out.path.npos) return kForbidden;
  return {};
}

HttpProblem check_request(std::span<const HttpHeader> fields, bool has_body, RequestHead& out) {
  clear_request(out);
  out.version = "HTTP/2.0";
  out.method = out.target = {};
  out.headers.clear();
  RequestFields checked{out};
  std::string_view scheme;
  std::string_view authority;
  constexpr HttpProblem kTooMany{431, "there are more than 100 headers"};
  for (const HttpHeader& field : fields) {
    if (field.name.starts_with(':')) {
      if (field.name == ":method") out.method = field.value;
      if (field.name == ":path") out.target = field.value;
      if (field.name == ":scheme") scheme = field.value;
      if (field.name == ":authority") authority = field.value;
      continue;
    }
    if (out.headers.full()) return kTooMany;
    if (const HttpProblem problem = checked(field)) return problem;
    out.headers.push_back(field);
  }
  if (!checked.has_host && !authority.empty()) {
    if (out.headers.full()) return kTooMany;
    const HttpHeader host{"host", authority};
    if (const HttpProblem problem = checked(host)) return problem;
    out.headers.push_back(host);
  }
  if (!all_are(out.method, in_token)) return {400, "the request's method is not a token"};
  if (!same_word(scheme, "http") && !same_word(scheme, "https"))
    return {400, "the request's scheme is not http or https"};
  if (out.target.size() > bounds::http_request_line_bytes_max) return {431, "the request line is longer than 63 KiB"};
  if (const HttpProblem problem = split_target(out)) return problem;
  if (const HttpProblem problem = checked.decide()) return problem;
  if (has_body && out.framing.content == HttpContent::none) out.framing.content = HttpContent::chunked;
  out.expects_continue = out.expects_continue && has_body;
  return {};
}

bool same_word(std::string_view a, std::string_view b) noexcept {
  return a == b || equals_ignoring_case(a, b);  // nearly always written the same
}

bool lists_word(std::string_view field, std::string_view word) noexcept {
  while (!field.empty()) {
    if (same_word(trim(take_until(field, ',')), word)) return true;
  }
  return false;
}

std::string_view media_type_of(std::string_view content_type) noexcept {
  return trim(content_type.substr(0, content_type.find(';')));
}

bool accepts_exactly(std::string_view accept, std::string_view media_type) noexcept {
  while (!accept.empty()) {
    std::string_view parameters = take_until(accept, ',');
    if (!same_word(trim(take_until(parameters, ';')), media_type)) continue;
    bool refused = false;
    while (!parameters.empty()) {
      const std::string_view parameter = trim(take_until(parameters, ';'));
      if (parameter.size() < 3 || to_lower(parameter[0]) != 'q' || parameter[1] != '=') continue;
      refused = parameter.find_first_not_of("0.", 2) == parameter.npos;
    }
    if (!refused) return true;
  }
  return false;
}

std::string_view query_value(std::string_view query, std::string_view name) noexcept {
  while (!query.empty()) {
    std::string_view pair = take_until(query, '&');
    if (take_until(pair, '=') == name) return pair;
  }
  return {};
}

}  // namespace weir
