// The content of an HTTP/1 message, piece by piece: by length, in chunks (RFC 9112 §7.1), or until the peer closes.
// Pieces are views into the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "weir/wire/http1.h"

namespace weir {

class HttpBody {
 public:
  // No content: done() is true.
  HttpBody() = default;
  // Content larger than `bytes_max` is a problem with status 413.
  HttpBody(const HttpFraming& framing, std::uint64_t bytes_max) noexcept;

  struct BodyPiece {
    std::size_t consumed = 0;
    std::string_view content;  // may be empty although bytes were consumed
    HttpProblem problem;
  };
  // Reads one piece, with at most `content_max` bytes of content. Call it again with the rest until done() or nothing
  // is consumed. Pass unconsumed bytes again with more after them; they are never more than a line of
  // bounds::http_chunk_line_bytes_max.
  BodyPiece next(std::string_view bytes, std::size_t content_max = std::numeric_limits<std::size_t>::max()) noexcept;

  // Replaces the bound: more than `bytes_max` further bytes of content are a problem with status 413.
  void allow_more(std::uint64_t bytes_max) noexcept;
  // Whether it is known how much content is still to come, and how much.
  bool has_known_rest() const noexcept { return state_ == BodyState::done || state_ == BodyState::length; }
  std::uint64_t rest() const noexcept { return left_; }
  bool done() const noexcept { return state_ == BodyState::done; }
  // Returns the fields after the last chunk, once done(). Views into this object, valid until it is assigned to.
  std::vector<HttpHeader> trailers() const;
  // Returns whether the content is complete if the peer closes now.
  bool complete_at_close() const noexcept { return done() || state_ == BodyState::until_close; }

 private:
  enum class BodyState : unsigned char { done, length, until_close, chunk_size, chunk, chunk_end, trailer };

  BodyPiece take(std::string_view bytes, std::size_t content_max, BodyState then) noexcept;
  BodyPiece read_chunk_size(std::string_view bytes) noexcept;
  BodyPiece read_trailer(std::string_view bytes) noexcept;

  BodyState state_ = BodyState::done;
  std::uint32_t spare_ = 0;       // bytes left for extensions and trailers
  std::uint64_t left_ = 0;        // bytes left of the length or of the chunk
  std::uint64_t bytes_left_ = 0;  // bytes left until bytes_max
  std::string trailer_lines_;     // with their CRLF
};

}  // namespace weir
