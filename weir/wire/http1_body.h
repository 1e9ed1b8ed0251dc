// The content of an HTTP/1 message, piece by piece: by length, in chunks (RFC 9112 §7.1), or until the peer closes.
// Pieces are views into the bytes given, so a relay copies nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/wire/http1.h"

namespace weir {

class HttpBody {
 public:
  // Without content: done.
  HttpBody() = default;
  // Content beyond `bytes_max` is a problem with status 413.
  HttpBody(const HttpFraming& framing, std::uint64_t bytes_max) noexcept;

  struct Step {
    std::size_t consumed = 0;
    std::string_view content;  // a piece of it; may be empty while something was consumed
    HttpProblem problem;
  };
  // One step; call again with what is left until done() or until nothing is consumed. What is not consumed is to be
  // given again with more behind it; it is never more than a line of bounds::http_chunk_line_bytes_max.
  Step next(std::string_view bytes) noexcept;

  bool done() const noexcept { return state_ == State::done; }
  // The peer closed: was that the end of the content, or is something missing?
  bool complete_at_close() const noexcept { return done() || state_ == State::until_close; }

 private:
  enum class State : unsigned char { done, length, until_close, chunk_size, chunk, chunk_end, trailer };

  Step take(std::string_view bytes, State then) noexcept;
  Step read_chunk_size(std::string_view bytes) noexcept;
  Step read_trailer(std::string_view bytes) noexcept;

  State state_ = State::done;
  std::uint32_t spare_ = 0;       // what extensions and trailers may still take
  std::uint64_t left_ = 0;        // of the length, or of the chunk
  std::uint64_t bytes_left_ = 0;  // until the bound
};

}  // namespace weir
