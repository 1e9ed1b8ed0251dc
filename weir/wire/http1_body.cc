#include "weir/wire/http1_body.h"

#include <algorithm>
#include <charconv>

namespace weir {
namespace {

constexpr HttpProblem kTooLarge{413, "the content is larger than the server accepts"};

struct ChunkLine {
  std::string_view text;  // without its CRLF
  bool complete = false;
  HttpProblem problem;
};

ChunkLine take_line(std::string_view bytes) noexcept {
  const std::string_view seen = bytes.substr(0, bounds::http_chunk_line_bytes_max + 2);
  const std::size_t end = seen.find('\n');
  if (end == seen.npos) {
    const bool too_long = bytes.size() >= bounds::http_chunk_line_bytes_max + 2;
    return {{}, too_long, too_long ? HttpProblem{400, "a line between chunks is too long"} : HttpProblem{}};
  }
  if (end == 0 || seen[end - 1] != '\r') return {{}, true, {400, "a line between chunks does not end with CRLF"}};
  const std::string_view text = seen.substr(0, end - 1);
  const auto control = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), control)) {
    return {{}, true, {400, "a line between chunks has a control character in it"}};
  }
  return {text, true, {}};
}

}  // namespace

HttpBody::HttpBody(const HttpFraming& framing, std::uint64_t bytes_max) noexcept
    : spare_(bounds::http_chunk_spare_bytes_max), left_(framing.length), bytes_left_(bytes_max) {
  switch (framing.content) {
    case HttpContent::none:
      break;
    case HttpContent::length:
      if (left_ > 0) state_ = BodyState::length;
      break;
    case HttpContent::chunked:
      state_ = BodyState::chunk_size;
      break;
    case HttpContent::until_close:
      state_ = BodyState::until_close;
      break;
  }
}

void HttpBody::allow_more(std::uint64_t bytes_max) noexcept {
  // The announced rest of a chunk counts against the bound.
  const std::uint64_t announced = state_ == BodyState::chunk ? left_ : 0;
  bytes_left_ = bytes_max - std::min(bytes_max, announced);
}

HttpBody::BodyPiece HttpBody::next(std::string_view bytes, std::size_t content_max) noexcept {
  switch (state_) {
    case BodyState::done:
      return {};
    case BodyState::length:
      if (left_ > bytes_left_) return {0, {}, kTooLarge};
      return take(bytes, content_max, BodyState::done);
    case BodyState::chunk:
      return take(bytes, content_max, BodyState::chunk_end);
    case BodyState::until_close:
      bytes = bytes.substr(0, content_max);
      if (bytes.size() > bytes_left_) return {0, {}, kTooLarge};
      bytes_left_ -= bytes.size();
      return {bytes.size(), bytes, {}};
    case BodyState::chunk_size:
      return read_chunk_size(bytes);
    case BodyState::chunk_end:
      if (!std::string_view("\r\n").starts_with(bytes.substr(0, 2)))
        return {0, {}, {400, "a chunk does not end with CRLF"}};
      if (bytes.size() < 2) return {};
      state_ = BodyState::chunk_size;
      return {2, {}, {}};
    case BodyState::trailer:
      return read_trailer(bytes);
  }
  return {};
}

HttpBody::BodyPiece HttpBody::take(std::string_view bytes, std::size_t content_max, BodyState then) noexcept {
  const std::string_view piece = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, content_max)));
  left_ -= piece.size();
  // By length, bytes_left_ is compared with what is left of it, so both go down.
  if (then == BodyState::done) bytes_left_ -= piece.size();
  if (left_ == 0) state_ = then;
  return {piece.size(), piece, {}};
}

HttpBody::BodyPiece HttpBody::read_chunk_size(std::string_view bytes) noexcept {
  const ChunkLine line = take_line(bytes);
  if (!line.complete || line.problem) return {0, {}, line.problem};
  std::uint64_t size = 0;
  const char* const begin = line.text.data();
  const char* const end = begin + line.text.size();
  const auto [rest, fault] = std::from_chars(begin, end, size, 16);
  if (fault == std::errc::result_out_of_range) return {0, {}, kTooLarge};
  // Extensions (RFC 9112 §7.1.1) are skipped unread.
  if (fault != std::errc{} || (rest != end && *rest != ';'))
    return {0, {}, {400, "a chunk's size is not a hexadecimal number"}};
  const auto extension = static_cast<std::uint32_t>(end - rest);
  if (extension > spare_) return {0, {}, {400, "the chunks have too many extensions"}};
  spare_ -= extension;
  if (size > bytes_left_) return {0, {}, kTooLarge};
  bytes_left_ -= size;
  left_ = size;
  state_ = size == 0 ? BodyState::trailer : BodyState::chunk;
  return {line.text.size() + 2, {}, {}};
}

HttpBody::BodyPiece HttpBody::read_trailer(std::string_view bytes) noexcept {
  const ChunkLine line = take_line(bytes);
  if (!line.complete || line.problem) return {0, {}, line.problem};
  if (line.text.empty()) {
    state_ = BodyState::done;
    return {2, {}, {}};
  }
  HttpHeader field;
  if (const HttpProblem problem = split_field(line.text, field)) return {0, {}, problem};
  const auto size = static_cast<std::uint32_t>(line.text.size());
  if (size > spare_) return {0, {}, {400, "there are too many trailers"}};
  spare_ -= size;
  trailer_lines_.append(line.text).append("\r\n");
  return {size + 2, {}, {}};
}

std::vector<HttpHeader> HttpBody::trailers() const {
  std::vector<HttpHeader> fields;
  for (std::string_view lines = trailer_lines_; !lines.empty();) {
    const std::size_t end = lines.find("\r\n");
    HttpHeader field;
    if (!split_field(lines.substr(0, end), field)) fields.push_back(field);
    lines.remove_prefix(end + 2);
  }
  return fields;
}

}  // namespace weir
