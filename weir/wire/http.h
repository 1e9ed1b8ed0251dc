// What HTTP/1 and HTTP/2 share: header fields, message heads, and functions that read field values. Views point into
// the parsed bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/time.h"

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

// What a listener accepts of a request's head, and how long a client may take. Bounds may be lowered, not raised.
struct HttpLimits {
  std::size_t head_bytes_max = bounds::http_head_bytes_max;
  std::size_t line_bytes_max = bounds::http_request_line_bytes_max;
  int line_status = 431;  // for a longer line; 414 where clients choose the targets
  Duration head_time_max = bounds::http_head_time_max;
  Duration body_time_max = bounds::http_body_time_max;  // for each body_progress_bytes of content
  std::size_t body_progress_bytes = bounds::http_window_bytes;

  HttpProblem line_too_long() const noexcept {
    return {line_status, line_bytes_max == bounds::http_request_line_bytes_max
                             ? "the request line is longer than 63 KiB"
                             : "the request line is longer than the server accepts"};
  }
  HttpProblem head_too_long() const noexcept {
    return {431, head_bytes_max == bounds::http_head_bytes_max ? "the head is longer than 64 KiB"
                                                               : "the head is longer than the server accepts"};
  }
};

// How the end of the content is determined.
enum class HttpContent : unsigned char { none, length, chunked, until_close };

// The header fields of one head, in order, stored inline.
class HttpHeaders {
 public:
  std::span<const HttpHeader> all() const noexcept { return {items_.data(), size_}; }
  std::span<HttpHeader> all() noexcept { return {items_.data(), size_}; }
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
  std::string_view accept;   // the first Accept field
  std::string_view scheme;   // "http" or "https"; set by the session
  std::string_view version;  // "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0", for logs; has static storage duration
  std::string_view upgrade;  // HTTP/1.1 with `Connection: upgrade`: the protocols of Upgrade; else empty
  std::optional<std::uint64_t> content_length;
  bool expects_continue = false;
  HttpFraming framing;
  HttpHeaders headers;
};

struct ResponseHead {
  int status = 0;
  std::string_view reason;
  std::optional<std::uint64_t> content_length;  // as written, even if there is no content (HEAD, 304)
  HttpFraming framing;
  HttpHeaders headers;
};

// Fields to send: first `lines`, text with a CRLF after each field, then `list`. Names may have any case.
// Connection-specific fields (RFC 9113 §8.2.2) are left out.
struct HttpFields {
  std::string_view lines;
  std::span<const HttpHeader> list;
};

// Fills `out` from the fields of an HTTP/2 request, pseudo-fields first, with the same checks that parse_request_head()
// makes for HTTP/1, so that a handler sees the same head in both versions. `:authority` appears among the headers as
// `host` unless there is one. `has_body`: the request does not end with its head. REQUIRES: the fields are well-formed
// for HTTP/2 (wire/http2.h checks that), and the method is not CONNECT. Does not set `scheme`.
HttpProblem check_request(std::span<const HttpHeader> fields, bool has_body, RequestHead& out);

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

}  // namespace weir
