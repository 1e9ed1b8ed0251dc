#include "weir/wire/http1.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "weir/base/ascii.h"
#include "weir/wire/http_fields.h"

namespace weir {
namespace {

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

// Parses the fields and the blank line after them. `each` sees every header and may refuse it.
template <class Each>
HeadResult parse_fields(std::string_view bytes, std::size_t from, const HttpLimits& limits, HttpHeaders& headers,
                        Each each) {
  const bool cut = bytes.size() >= limits.head_bytes_max;
  bytes = bytes.substr(0, limits.head_bytes_max);
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
  if (cut) return {0, limits.head_too_long()};
  return {};
}

// Returns the first line of a message, or why there is none. Checks the length first, so that a line in pieces gets the
// same answer as a whole one.
Line take_first_line(std::string_view bytes, std::size_t from, std::size_t bytes_max, HttpProblem too_long) noexcept {
  const Line line = take_line(bytes.substr(0, from + bytes_max + 2), from);
  if (!line.complete && bytes.size() >= from + bytes_max + 2) return {{}, true, too_long};
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

HttpProblem parse_request_line(std::string_view line, RequestHead& out) noexcept {
  out.method = take_until(line, ' ');
  out.target = take_until(line, ' ');
  if (out.method.empty() || !all_are(out.method, in_token)) return {400, "the request's method is not a token"};
  if (!parse_version(line, out.framing.http11)) {
    if (looks_like_a_version(line)) return {505, "only HTTP/1.1 and HTTP/1.0 are supported"};
    return {400, "the request line is not a method, a target and a version with one space between them"};
  }
  out.version = out.framing.http11 ? "HTTP/1.1" : "HTTP/1.0";
  return split_target(out);
}

}  // namespace

HttpProblem split_field(std::string_view line, HttpHeader& header) noexcept {
  if (line.empty()) return {400, "a header is empty"};
  if (line.front() == ' ' || line.front() == '\t') return {400, "a header is folded over two lines"};
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return {400, "a header has no colon"};
  header.name = line.substr(0, colon);
  header.value = trim(line.substr(colon + 1));
  if (header.name.empty() || !all_are(header.name, in_token)) return {400, "a header's name is not a token"};
  if (!is_value(header.value)) return {400, "a header's value has a control character in it"};
  return {};
}

HeadResult parse_request_head(std::string_view bytes, RequestHead& out, const HttpLimits& limits) {
  if (bytes.empty()) return {};
  // Bytes that cannot start a request (a TLS ClientHello, for example) are refused before the line is complete.
  if (bytes[0] != '\r' && !all_are(bytes.substr(0, 1), in_token)) return {0, {400, "this is not an HTTP request"}};
  const std::size_t start = bytes.starts_with("\r\n") ? 2 : 0;
  const Line line = take_first_line(bytes, start, limits.line_bytes_max, limits.line_too_long());
  if (!line.complete || line.problem) return {0, line.problem};
  clear_request(out);
  if (const HttpProblem problem = parse_request_line(line.text, out)) return {0, problem};

  RequestFields fields{out};
  const HeadResult step = parse_fields(bytes, start + line.text.size() + 2, limits, out.headers, std::ref(fields));
  if (step.size == 0) return step;
  if (const HttpProblem problem = fields.decide()) return {0, problem};
  // HTTP/1.0 has no interim responses (RFC 9110 §10.1.1), and without content there is nothing to wait for.
  const bool content = out.framing.content == HttpContent::chunked || out.framing.length > 0;
  out.expects_continue = out.expects_continue && out.framing.http11 && content;
  return step;
}

bool is_begun_request(std::string_view bytes) noexcept {
  return !std::string_view("\r\n").starts_with(bytes);
}

HeadResult parse_response_head(std::string_view bytes, bool to_head, ResponseHead& out) {
  const Line line =
      take_first_line(bytes, 0, bounds::http_request_line_bytes_max, {502, "the status line is longer than 63 KiB"});
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
  const HeadResult step = parse_fields(bytes, line.text.size() + 2, HttpLimits{}, out.headers, each);
  if (step.size == 0) return step;
  if (const HttpProblem problem = fields.decide(out.framing)) return {0, problem};
  out.content_length.reset();
  if (fields.has_length) out.content_length = fields.length;
  // RFC 9112 §6.3: which responses have content, and which content ends with the connection.
  if (to_head || out.status < 200 || out.status == 204 || out.status == 304) {
    out.framing.content = HttpContent::none;
  } else if (out.framing.content == HttpContent::none) {
    out.framing.content = HttpContent::until_close;
    out.framing.keep_alive = false;
  }
  return step;
}

}  // namespace weir
