// HTTP/1.1 and 1.0 heads (RFC 9112), both directions. Parsing: bytes in, views into them out, nothing copied, nothing
// guessed: what two implementations could read differently (bare LF, folded lines, a space before the colon, two
// lengths, a length beside an encoding) is refused, because a difference of opinion is how requests are smuggled.
// Content is http1_body.h; whole messages are http1_reader.h.
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

// Why a message cannot be read, and the status that says so. Without a status there is no problem.
struct HttpProblem {
  int status = 0;
  std::string_view sentence;  // lives for ever

  explicit operator bool() const noexcept { return status != 0; }
};

// How the end of a message's content is known.
enum class HttpContent : unsigned char { none, length, chunked, until_close };

// The fields of one head, in order, inline.
class HttpHeaders {
 public:
  std::span<const HttpHeader> all() const noexcept { return {items_.data(), size_}; }
  // The first of that name, or null.
  const HttpHeader* find(std::string_view name) const noexcept;
  void clear() noexcept { size_ = 0; }
  bool full() const noexcept { return size_ == items_.size(); }
  void push_back(HttpHeader header) noexcept { items_[size_++] = header; }  // REQUIRES: !full()

 private:
  std::array<HttpHeader, bounds::http_headers_max> items_;
  std::size_t size_ = 0;
};

// What both kinds of head say about the message behind them.
struct HttpFraming {
  bool http11 = true;
  bool keep_alive = true;
  HttpContent content = HttpContent::none;
  std::uint64_t length = 0;  // of HttpContent::length; what does not fit is the largest number
};

// A few kilobytes: one per loop, used again and again. Views point into the bytes parsed.
struct RequestHead {
  std::string_view method;
  std::string_view target;  // as written
  std::string_view path;    // of the target, not decoded; "*" of OPTIONS *
  std::string_view query;   // behind the '?'
  std::string_view host;
  std::string_view content_type;
  std::string_view content_encoding;
  std::string_view accept;  // its first line
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

struct HeadStep {
  std::size_t size = 0;  // of the head with its blank line; 0: the rest is still to come, or there is a problem
  HttpProblem problem;
};

// Every line is checked as soon as it is complete. Calling it again with more bytes behind the same ones gives the same
// answer as calling it once with all. One empty line before the request is skipped (RFC 9112 §2.2).
HeadStep parse_request_head(std::string_view bytes, RequestHead& out);

// What is held of a head is more than the empty line that may stand before a request.
bool is_begun_request(std::string_view bytes) noexcept;

// `to_head`: the request was HEAD, so there is no content whatever the fields say.
HeadStep parse_response_head(std::string_view bytes, bool to_head, ResponseHead& out);

// Equal but for the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b) noexcept;

// Whether a comma-separated field (Connection, Allow) has this word.
bool lists_word(std::string_view field, std::string_view word) noexcept;

// Whether `Accept` names exactly this media type, and not with q=0. Wildcards do not count.
bool accepts_exactly(std::string_view accept, std::string_view media_type) noexcept;

// "application/json; charset=utf-8" is "application/json".
std::string_view media_type_of(std::string_view content_type) noexcept;

// The value of name=value in a query string, not decoded; empty if it is absent or empty.
std::string_view query_value(std::string_view query, std::string_view name) noexcept;

// "Not Found".
std::string_view reason_of(int status) noexcept;

// A whole response. Appended to a string; what is given must have no line breaks in it.
struct HttpResponse {
  int status = 200;
  std::string_view content_type;  // empty: none
  std::string_view fields;        // more of them, each with its CRLF
  std::string_view content;
  bool head_only = false;  // to HEAD: says how long the content is and leaves it out
  bool keep_alive = true;
  bool http11 = true;  // what the peer speaks
};
void write_response(const HttpResponse& response, std::string& out);
void write_field(std::string_view name, std::string_view value, std::string& out);
// "Date: Sun, 06 Nov 1994 08:49:37 GMT" with its CRLF (RFC 9110 §5.6.7). REQUIRES: from the year 0 to 9999.
void write_date_field(std::chrono::sys_seconds when, std::string& out);
inline constexpr std::string_view kHttpContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// A client's request with its Host and, when there is content, its length and type.
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
