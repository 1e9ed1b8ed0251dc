// HTTP/1.1 and 1.0 heads (RFC 9112), both directions. The parser returns views into its input and copies nothing. It
// refuses everything that two implementations could interpret differently (bare LF, folded lines, a space before the
// colon, two lengths, a length with an encoding), because such differences enable request smuggling. Content is in
// http1_body.h.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/wire/http.h"

namespace weir {

struct HeadResult {
  std::size_t size = 0;  // of the head with its blank line; 0: incomplete, or there is a problem
  HttpProblem problem;
};

// Checks each line as soon as it is complete. Calling it again with more bytes gives the same result as calling it once
// with all. Skips one empty line before the request (RFC 9112 §2.2).
HeadResult parse_request_head(std::string_view bytes, RequestHead& out, const HttpLimits& limits = {});

// Returns whether the bytes are more than the empty line that may precede a request.
bool is_begun_request(std::string_view bytes) noexcept;

// `to_head`: the request was HEAD, so there is no content, whatever the fields say.
HeadResult parse_response_head(std::string_view bytes, bool to_head, ResponseHead& out);

// Splits "Name: value" and checks both parts.
HttpProblem split_field(std::string_view line, HttpHeader& header) noexcept;

// Returns whether a field frames its message or belongs to the connection it is on (RFC 9110 §7.6.1): Connection,
// Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade, Content-Length. The functions that write a head set these
// themselves.
bool is_framing_field(std::string_view name) noexcept;
// Appends the fields, without framing fields.
void write_fields(const HttpFields& fields, std::string& out);
// Appends one chunk (RFC 9112 §7.1). Appends nothing if `content` is empty: an empty chunk would end the body.
void write_chunk(std::string_view content, std::string& out);
void write_last_chunk(std::span<const HttpHeader> trailers, std::string& out);

// The head of a response with its blank line: Content-Type, framing, fields, Date, Connection. Leaves out framing
// fields of `fields.list`; the lines are written as they are.
struct HttpResponseHead {
  int status = 200;
  std::string_view content_type;  // empty: none
  HttpFields fields;
  std::string_view date;                    // with its CRLF; empty: none, or the fields have one
  HttpContent content = HttpContent::none;  // of the message: `none` writes no framing field
  std::uint64_t length = 0;                 // for HttpContent::length
  bool keep_alive = true;
  bool http11 = true;            // the peer's version
  std::string_view reason = {};  // empty: the usual one of the status
};
void write_response_head(const HttpResponseHead& head, std::string& out);
// Appends a 101 head. Unlike the other functions, it keeps the Upgrade fields of `fields.list`.
void write_upgrade_head(const HttpFields& fields, std::string& out);
// Appends the head of an interim response: 1xx except 101.
void write_interim_head(int status, const HttpFields& fields, std::string& out);

void write_field(std::string_view name, std::string_view value, std::string& out);
// "Date: Sun, 06 Nov 1994 08:49:37 GMT" with its CRLF (RFC 9110 §5.6.7). REQUIRES: from the year 0 to 9999.
void write_date_field(std::chrono::sys_seconds when, std::string& out);
inline constexpr std::string_view kHttpContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace weir
