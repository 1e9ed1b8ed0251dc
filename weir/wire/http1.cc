#include "weir/wire/http1.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>

#include "weir/base/ascii.h"

namespace weir {
namespace {

constexpr bool is_letter_or_digit(unsigned c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The character classes of bytes.
enum CharClass : unsigned char { in_token = 1, in_value = 2, in_target = 4, in_host = 8 };

constexpr std::array<unsigned char, 256> kCharClasses = [] {
  std::array<unsigned char, 256> classes{};
  for (unsigned c = 0; c < 256; ++c) {
    const auto one_of = [&](std::string_view set) { return set.find(static_cast<char>(c)) != set.npos; };
    const bool visible = c > 0x20 && c < 0x7F;
    unsigned char allowed = 0;
    if (is_letter_or_digit(c) || one_of("!#$%&'*+-.^_`|~")) allowed |= in_token;  // RFC 9110 §5.6.2
    if (visible || c == ' ' || c == '\t' || c >= 0x80) allowed |= in_value;       // RFC 9110 §5.5
    // Also accepts what browsers send unescaped in a query (beyond RFC 3986); no fragment, no quotes or angle brackets.
    if (visible && !one_of("#\"<>\\")) allowed |= in_target;
    if (is_letter_or_digit(c) || one_of("-._~!$&'()*+,;=:[]%")) allowed |= in_host;  // RFC 3986 §3.2.2
    classes[c] = allowed;
  }
  return classes;
}();

// Nearly always true, so it checks all bytes without a branch per byte.
constexpr bool all_are(std::string_view text, CharClass allowed) noexcept {
  unsigned in_all = allowed;
  for (const char c : text) in_all &= kCharClasses[static_cast<unsigned char>(c)];
  return in_all != 0;
}

// The same as all_are(text, in_value), written so that the compiler vectorizes it: values are most of a head.
constexpr bool is_value(std::string_view text) noexcept {
  unsigned char bad = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    bad = static_cast<unsigned char>(bad | ((byte < 0x20) & (byte != '\t')) | (byte == 0x7F));
  }
  return bad == 0;
}

static_assert([] {
  for (unsigned c = 0; c < 256; ++c) {
    const char byte = static_cast<char>(c);
    if (is_value({&byte, 1}) != all_are({&byte, 1}, in_value)) return false;
  }
  return true;
}());

// Returns the part before `mark` and removes it, with the mark, from `text`.
constexpr std::string_view take_until(std::string_view& text, char mark) noexcept {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// One line of a head without its CRLF.
struct Line {
  std::string_view text;
  bool complete = false;
  HttpProblem problem;
};

Line take_line(std::string_view bytes, std::size_t from) noexcept {
  const std::size_t end = bytes.find('\n', from);
  if (end == bytes.npos) return {};
  const std::string_view text = bytes.substr(from, end - from);
  if (text.empty() || text.back() != '\r') return {{}, true, {400, "a line ends with LF alone; lines end with CRLF"}};
  return {text.substr(0, text.size() - 1), true, {}};
}

// The framing fields seen so far.
struct FramingFields {
  bool has_length = false;
  bool has_encoding = false;
  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
  std::uint64_t length = 0;

  HttpProblem read(HttpHeader header) noexcept;
  HttpProblem read_length(std::string_view value) noexcept;
  // REQUIRES: every field was read.
  HttpProblem decide(HttpFraming& framing) const noexcept;
};

HttpProblem FramingFields::read_length(std::string_view value) noexcept {
  if (has_length) return {400, "Content-Length is given twice"};
  has_length = true;
  const char* const end = value.data() + value.size();
  const bool digits = std::all_of(value.data(), end, [](char c) { return c >= '0' && c <= '9'; });
  if (value.empty() || !digits) return {400, "Content-Length is not a whole number"};
  const auto [rest, fault] = std::from_chars(value.data(), end, length);
  if (fault != std::errc{} || rest != end) length = std::numeric_limits<std::uint64_t>::max();
  return {};
}

HttpProblem FramingFields::read(HttpHeader header) noexcept {
  switch (header.name.size()) {
    case 10:
      if (!same_word(header.name, "connection")) return {};
      close = close || lists_word(header.value, "close");
      keep_alive = keep_alive || lists_word(header.value, "keep-alive");
      upgrade = upgrade || lists_word(header.value, "upgrade");
      return {};
    case 14:
      return same_word(header.name, "content-length") ? read_length(header.value) : HttpProblem{};
    case 17:
      if (!same_word(header.name, "transfer-encoding")) return {};
      if (has_encoding) return {400, "Transfer-Encoding is given twice"};
      has_encoding = true;
      if (!same_word(header.value, "chunked")) return {501, "the only supported Transfer-Encoding is chunked"};
      return {};
    default:
      return {};
  }
}

HttpProblem FramingFields::decide(HttpFraming& framing) const noexcept {
  if (has_length && has_encoding) return {400, "Content-Length and Transfer-Encoding must not be combined"};
  if (has_encoding && !framing.http11) return {400, "HTTP/1.0 has no Transfer-Encoding"};
  framing.keep_alive = !close && (framing.http11 || keep_alive);
  framing.length = length;
  framing.content = has_encoding ? HttpContent::chunked : has_length ? HttpContent::length : HttpContent::none;
  return {};
}

HttpProblem split_field(std::string_view line, HttpHeader& header) noexcept {
  if (line.front() == ' ' || line.front() == '\t') return {400, "a header is folded over two lines"};
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return {400, "a header has no colon"};
  header.name = line.substr(0, colon);
  header.value = trim(line.substr(colon + 1));
  if (header.name.empty() || !all_are(header.name, in_token)) return {400, "a header's name is not a token"};
  if (!is_value(header.value)) return {400, "a header's value has a control character in it"};
  return {};
}

// Parses the fields and the blank line after them. `each` sees every header and may refuse it.
template <class Each>
HeadResult parse_fields(std::string_view bytes, std::size_t from, HttpHeaders& headers, Each each) {
  const bool cut = bytes.size() >= bounds::http_head_bytes_max;
  bytes = bytes.substr(0, bounds::http_head_bytes_max);
  headers.clear();
  for (;;) {
    const Line line = take_line(bytes, from);
    if (!line.complete) break;
    if (line.problem) return {0, line.problem};
    from += line.text.size() + 2;
    if (line.text.empty()) return {from, {}};
    if (headers.full()) return {0, {431, "there are more than 100 headers"}};
    HttpHeader header;
    if (const HttpProblem problem = split_field(line.text, header)) return {0, problem};
    if (const HttpProblem problem = each(header)) return {0, problem};
    headers.push_back(header);
  }
  if (cut) return {0, {431, "the head is longer than 64 KiB"}};
  return {};
}

// Returns the first line of a message, or why there is none. Checks the length first, so that a line in pieces gets the
// same answer as a whole one.
Line take_first_line(std::string_view bytes, std::size_t from, HttpProblem too_long) noexcept {
  const Line line = take_line(bytes.substr(0, from + bounds::http_request_line_bytes_max + 2), from);
  if (!line.complete && bytes.size() >= from + bounds::http_request_line_bytes_max + 2) return {{}, true, too_long};
  return line;
}

bool parse_version(std::string_view text, bool& http11) noexcept {
  http11 = text == "HTTP/1.1";
  return http11 || text == "HTTP/1.0";
}

bool looks_like_a_version(std::string_view text) noexcept {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 8 && text.starts_with("HTTP/") && digit(text[5]) && text[6] == '.' && digit(text[7]);
}

// Origin, absolute and asterisk form (RFC 9112 §3.2). There are no tunnels here, so no authority form.
HttpProblem split_target(RequestHead& out) noexcept {
  constexpr HttpProblem kBad{400, "the request target is neither a path nor an http URL"};
  std::string_view rest = out.target;
  if (rest.empty() || !all_are(rest, in_target))
    return {400, "the request target is empty or has a forbidden character"};
  if (rest == "*") {
    if (out.method != "OPTIONS") return {400, "the request target * is for OPTIONS only"};
    out.path = rest;
    return {};
  }
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
  return {};
}

HttpProblem parse_request_line(std::string_view line, RequestHead& out) noexcept {
  out.method = take_until(line, ' ');
  out.target = take_until(line, ' ');
  if (out.method.empty() || !all_are(out.method, in_token)) return {400, "the request's method is not a token"};
  if (!parse_version(line, out.framing.http11)) {
    if (looks_like_a_version(line)) return {505, "only HTTP/1.1 and HTTP/1.0 are supported"};
    return {400, "the request line is not a method, a target and a version with one space between them"};
  }
  return split_target(out);
}

// Those of a request that are more than framing.
struct RequestFields {
  RequestHead& out;
  FramingFields framing;
  bool has_host = false;

  HttpProblem operator()(HttpHeader header) noexcept {
    switch (header.name.size()) {
      case 4:
        if (!same_word(header.name, "host")) return {};
        if (has_host) return {400, "Host is given twice"};
        has_host = true;
        out.host = header.value;
        if (!all_are(out.host, in_host)) return {400, "Host has a forbidden character"};
        return {};
      case 6:
        if (out.accept.empty() && same_word(header.name, "accept")) out.accept = header.value;
        return same_word(header.name, "expect") ? expect(header.value) : HttpProblem{};
      case 12:
        if (same_word(header.name, "content-type")) out.content_type = header.value;
        return {};
      case 16:
        if (same_word(header.name, "content-encoding")) out.content_encoding = header.value;
        return {};
      default:
        return framing.read(header);
    }
  }

  HttpProblem expect(std::string_view value) noexcept {
    if (!same_word(value, "100-continue")) return {417, "the only supported expectation is 100-continue"};
    out.expects_continue = true;
    return {};
  }
};

}  // namespace

const HttpHeader* HttpHeaders::find(std::string_view name) const noexcept {
  for (const HttpHeader& header : all()) {
    if (same_word(header.name, name)) return &header;
  }
  return nullptr;
}

HeadResult parse_request_head(std::string_view bytes, RequestHead& out) {
  if (bytes.empty()) return {};
  // What does not even begin like a request (a TLS hello, say) is answered before there is a line.
  if (bytes[0] != '\r' && !all_are(bytes.substr(0, 1), in_token)) return {0, {400, "this is not an HTTP request"}};
  const std::size_t start = bytes.starts_with("\r\n") ? 2 : 0;
  const Line line = take_first_line(bytes, start, {431, "the request line is longer than 63 KiB"});
  if (!line.complete || line.problem) return {0, line.problem};
  out.path = out.query = out.host = out.content_type = out.content_encoding = out.accept = out.upgrade = {};
  out.content_length.reset();
  out.expects_continue = false;
  out.framing = {};
  if (const HttpProblem problem = parse_request_line(line.text, out)) return {0, problem};

  RequestFields fields{out, {}, false};
  const HeadResult step = parse_fields(bytes, start + line.text.size() + 2, out.headers, std::ref(fields));
  if (step.size == 0) return step;
  if (const HttpProblem problem = fields.framing.decide(out.framing)) return {0, problem};
  if (out.framing.http11 && !fields.has_host) return {0, {400, "the request has no Host"}};
  // HTTP/1.0 knows no interim answers (RFC 9110 §10.1.1), and without content there is nothing to wait for.
  const bool content = out.framing.content == HttpContent::chunked || out.framing.length > 0;
  out.expects_continue = out.expects_continue && out.framing.http11 && content;
  if (out.framing.content == HttpContent::length) out.content_length = out.framing.length;
  if (fields.framing.upgrade && out.framing.http11) {
    const HttpHeader* const upgrade = out.headers.find("upgrade");
    if (upgrade != nullptr) out.upgrade = upgrade->value;
  }
  return step;
}

bool is_begun_request(std::string_view bytes) noexcept {
  return !std::string_view("\r\n").starts_with(bytes);
}

HeadResult parse_response_head(std::string_view bytes, bool to_head, ResponseHead& out) {
  const Line line = take_first_line(bytes, 0, {502, "the status line is longer than 63 KiB"});
  if (!line.complete || line.problem) return {0, line.problem};
  out.framing = {};
  std::string_view rest = line.text;
  if (!parse_version(take_until(rest, ' '), out.framing.http11)) return {0, {502, "the status line has no version"}};
  const std::string_view code = take_until(rest, ' ');
  const auto [end, fault] = std::from_chars(code.data(), code.data() + code.size(), out.status);
  const bool whole = fault == std::errc{} && end == code.data() + code.size();
  if (code.size() != 3 || !whole || out.status < 100) return {0, {502, "the status line has no status"}};
  if (!is_value(rest)) return {0, {502, "the status line has a control character in it"}};
  out.reason = rest;

  FramingFields fields;
  const auto each = [&](HttpHeader header) { return fields.read(header); };
  const HeadResult step = parse_fields(bytes, line.text.size() + 2, out.headers, each);
  if (step.size == 0) return step;
  if (const HttpProblem problem = fields.decide(out.framing)) return {0, problem};
  // RFC 9112 §6.3: which responses have content, and when its end is the connection's.
  if (to_head || out.status < 200 || out.status == 204 || out.status == 304) {
    out.framing.content = HttpContent::none;
  } else if (out.framing.content == HttpContent::none) {
    out.framing.content = HttpContent::until_close;
    out.framing.keep_alive = false;
  }
  return step;
}

bool same_word(std::string_view a, std::string_view b) noexcept {
  return equals_ignoring_case(a, b);
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
