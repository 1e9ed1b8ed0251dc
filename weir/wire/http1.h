// HTTP/1.1 and 1.0 heads (RFC 9112), both directions. The parser returns views into its input and copies nothing. It
// refuses everything that two implementations could interpret differently (bare LF, folded lines, a space before the
// colon, two lengths, a length with an encoding), because such differences enable request smuggling. Content is in
// http1_body.h, whole messages in http1_reader.h.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"

namespace weir {

struct HttpHeader {
  std::string_view name;  // as written; compare with same_word()
  std::string_view value;
};

// Why a message is refused, and the status to answer with. A status of 0 means no problem.
struct HttpProblem {
  int status = 0;
  std::string_view sentence;  // has static storage duration

  explicit operator bool() const noexcept { return status != 0; }
};

// How the end of the content is determined.
enum class HttpContent : unsigned char { none, length, chunked, until_close };

// The header fields of one head, in order, stored inline.
class HttpHeaders {
 public:
  std::span<const HttpHeader> all() const noexcept { return {items_.data(), size_}; }
  // Returns the first field of that name, or null.
  const HttpHeader* find(std::string_view name) const noexcept;
  void clear() noexcept { size_ = 0; }
  bool full() const noexcept { return size_ == items_.size(); }
  void push_back(HttpHeader header) noexcept { items_[size_++] = header; }  // REQUIRES: !full()

 private:
  std::array<HttpHeader, bounds::http_headers_max> items_;
  std::size_t size_ = 0;
};

// The framing that both kinds of head define.
struct HttpFraming {
  bool http11 = true;
  bool keep_alive = true;
  HttpContent content = HttpContent::none;
  std::uint64_t length = 0;  // for HttpContent::length; clamped if it does not fit
};

// A few kilobytes: reuse one per loop. Views point into the parsed bytes.
struct RequestHead {
  std::string_view method;
  std::string_view target;  // as written
  std::string_view path;    // of the target, not decoded; "*" for OPTIONS *
  std::string_view query;   // after the '?'
  std::string_view host;
  std::string_view content_type;
  std::string_view content_encoding;
  std::string_view accept;  // of its first field
  bool expects_continue = false;
  HttpFraming framing;
  HttpHeaders headers;
};

struct ResponseHead {
  int status = 0;
  std::string_view reason;
  HttpFraming framing;
  HttpHeaders headers;
};

struct HeadResult {
  std::size_t size = 0;  // of the head with its blank line; 0: incomplete, or there is a problem
  HttpProblem problem;
};

// Checks each line as soon as it is complete. Calling it again with more bytes gives the same result as calling it once
// with all. Skips one empty line before the request (RFC 9112 §2.2).
HeadResult parse_request_head(std::string_view bytes, RequestHead& out);

// Returns whether the bytes are more than the empty line that may precede a request.
bool is_begun_request(std::string_view bytes) noexcept;

// `to_head` says that the request was HEAD, so that there is no content whatever the fields say.
HeadResult parse_response_head(std::string_view bytes, bool to_head, ResponseHead& out);

// Compares ignoring the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b) noexcept;

// Returns whether a comma-separated field (Connection, Allow) contains this word.
bool lists_word(std::string_view field, std::string_view word) noexcept;

// Returns whether `Accept` names exactly this media type, and not with q=0. Ignores wildcards.
bool accepts_exactly(std::string_view accept, std::string_view media_type) noexcept;

// Returns the media type without parameters: "application/json; charset=utf-8" gives "application/json".
std::string_view media_type_of(std::string_view content_type) noexcept;

// Returns the value of name=value in a query string, not decoded; empty if it is absent or empty.
std::string_view query_value(std::string_view query, std::string_view name) noexcept;

// Returns the reason phrase of a status: "Not Found".
std::string_view reason_of(int status) noexcept;

// A whole response. Its texts must not contain line breaks.
struct HttpResponse {
  int status = 200;
  std::string_view content_type;  // empty: none
  std::string_view fields;        // more header fields, each with its CRLF
  std::string_view content;
  bool head_only = false;  // for HEAD: writes the length but not the content
  bool keep_alive = true;
  bool http11 = true;  // the peer's version
};
void write_response(const HttpResponse& response, std::string& out);
void write_field(std::string_view name, std::string_view value, std::string& out);
// "Date: Sun, 06 Nov 1994 08:49:37 GMT" with its CRLF (RFC 9110 §5.6.7). REQUIRES: from the year 0 to 9999.
void write_date_field(std::chrono::sys_seconds when, std::string& out);
inline constexpr std::string_view kHttpContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// A client's request with its Host and, if there is content, its length and type.
struct HttpRequest {
  std::string_view method = "GET";
  std::string_view target = "/";
  std::string_view host;
  std::string_view fields;  // more of them, each with its CRLF
  std::string_view content_type;
  std::string_view content;
};
void write_request(const HttpRequest& request, std::string& out);

}  // namespace weir
