// Whole HTTP/1 messages out of a stream that comes in any pieces. A request that is all there is not copied; one that
// comes in pieces is gathered here, so the connection's buffer need hold no more than one head.
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
    more,     // nothing whole yet
    expect,   // a head that expects 100-continue: write kHttpContinue or refuse; the same request follows with content
    request,  // head() and content()
    problem,  // the stream cannot be read any further
  };
  struct Step {
    Event event = Event::more;
    std::size_t consumed = 0;  // the rest of the bytes is to be given again with more behind it
  };

  // `head` may be shared by all readers of a loop: it is written by next() and means something until the next next() of
  // any of them.
  explicit RequestReader(RequestHead& head, std::size_t content_bytes_max = bounds::http_body_bytes_max) noexcept
      : head_(head), content_bytes_max_(content_bytes_max) {}

  Step next(std::string_view bytes);

  const RequestHead& head() const noexcept { return head_; }
  // Points into the bytes of next() or into the reader.
  std::string_view content() const noexcept { return content_; }
  const HttpProblem& problem() const noexcept { return problem_; }
  // A head is complete, its content is not.
  bool awaits_content() const noexcept { return gathering_; }
  // Gives back the memory of the last request; its views end here.
  void forget() noexcept;

 private:
  Step read_head(std::string_view bytes);
  Step gather(std::string_view bytes, std::size_t used);
  Step fail(HttpProblem problem) noexcept;

  RequestHead& head_;
  std::size_t content_bytes_max_;
  std::size_t searched_ = 0;  // of an incomplete head: already searched for line ends
  bool has_line_ = false;     // and one was found
  bool gathering_ = false;
  HttpBody body_;
  std::string head_text_;  // of the request being gathered
  std::string gathered_;
  std::string_view content_;
  HttpProblem problem_;
};

// The client's side: one response, its content gathered.
class ResponseReader {
 public:
  enum class Event : unsigned char { more, response, problem };
  struct Step {
    Event event = Event::more;
    std::size_t consumed = 0;
  };

  // `to_head`: the request was HEAD.
  explicit ResponseReader(bool to_head = false, std::size_t content_bytes_max = bounds::http_body_bytes_max) noexcept
      : to_head_(to_head), content_bytes_max_(content_bytes_max) {}

  // Interim responses (1xx but 101) are skipped.
  Step next(std::string_view bytes);
  // The peer closed the connection: `response` if that ends the content, otherwise `problem`.
  Event close() noexcept;
  // For the next response on the same connection.
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
