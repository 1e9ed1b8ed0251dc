// Reads whole HTTP/1 messages from a byte stream. Does not copy a request that arrives whole; one that arrives in
// pieces is collected here, so that the connection's buffer holds at most one head.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/wire/http1.h"
#include "weir/wire/http1_body.h"

namespace weir {

class RequestReader {
 public:
  enum class Event : unsigned char {
    more,     // no complete request yet
    expect,   // the head expects 100-continue: write kHttpContinue or refuse; `request` follows with the content
    request,  // head() and content() are set
    problem,  // the stream is unusable; see problem()
  };
  struct ReadResult {
    Event event = Event::more;
    std::size_t consumed = 0;  // pass the remaining bytes again, with more after them
  };

  // `head` may be shared by all readers of a loop: next() writes it, and it is valid until the next call of next() on
  // any of them.
  explicit RequestReader(RequestHead& head, std::size_t content_bytes_max = bounds::http_body_bytes_max) noexcept
      : head_(head), content_bytes_max_(content_bytes_max) {}

  ReadResult next(std::string_view bytes);

  const RequestHead& head() const noexcept { return head_; }
  // Points into the bytes passed to next() or into the reader.
  std::string_view content() const noexcept { return content_; }
  const HttpProblem& problem() const noexcept { return problem_; }
  // True while the head is complete but the content is not.
  bool awaits_content() const noexcept { return gathering_; }
  // Frees the memory of the last request and invalidates its views.
  void forget() noexcept;

 private:
  ReadResult read_head(std::string_view bytes);
  ReadResult gather(std::string_view bytes, std::size_t used);
  ReadResult fail(HttpProblem problem) noexcept;

  RequestHead& head_;
  std::size_t content_bytes_max_;
  std::size_t searched_ = 0;  // bytes of an incomplete head already searched for line ends
  bool has_line_ = false;     // a line end was found
  bool gathering_ = false;
  HttpBody body_;
  std::string head_text_;  // of the request being collected
  std::string gathered_;
  std::string_view content_;
  HttpProblem problem_;
};

// The client's side: reads one response with its content.
class ResponseReader {
 public:
  enum class Event : unsigned char { more, response, problem };
  struct ReadResult {
    Event event = Event::more;
    std::size_t consumed = 0;
  };

  // `to_head` says that the request was HEAD.
  explicit ResponseReader(bool to_head = false, std::size_t content_bytes_max = bounds::http_body_bytes_max) noexcept
      : to_head_(to_head), content_bytes_max_(content_bytes_max) {}

  // Skips interim responses (1xx except 101).
  ReadResult next(std::string_view bytes);
  // The peer closed the connection. Returns `response` if that ends the content, otherwise `problem`.
  Event close() noexcept;
  // Prepares for the next response on the same connection.
  void reset(bool to_head = false) noexcept;

  const ResponseHead& head() const noexcept { return head_; }
  std::string_view content() const noexcept { return content_; }
  const HttpProblem& problem() const noexcept { return problem_; }

 private:
  ResponseHead head_;
  bool to_head_;
  bool in_content_ = false;
  std::size_t content_bytes_max_;
  HttpBody body_;
  std::string head_text_;
  std::string content_;
  HttpProblem problem_;
};

}  // namespace weir
