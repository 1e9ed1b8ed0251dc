#include "weir/wire/http1_reader.h"

#include <algorithm>

#include "weir/base/assert.h"

namespace weir {

RequestReader::ReadResult RequestReader::next(std::string_view bytes) {
  return gathering_ ? gather(bytes, 0) : read_head(bytes);
}

void RequestReader::forget() noexcept {
  content_ = {};
  head_text_ = {};
  gathered_ = {};
}

RequestReader::ReadResult RequestReader::fail(HttpProblem problem) noexcept {
  problem_ = problem;
  return {Event::problem, 0};
}

RequestReader::ReadResult RequestReader::read_head(std::string_view bytes) {
  // Parses again only when a line is complete, of which there are about a hundred, or a limit is reached: a peer that
  // sends single bytes costs no more than the search for line ends.
  const std::size_t start = bytes.starts_with("\r\n") ? 2 : 0;
  const auto line = [&] { return bytes.find('\n', std::max(searched_, start)) != bytes.npos; };
  const bool long_line = !has_line_ && bytes.size() >= start + bounds::http_request_line_bytes_max + 2;
  if (searched_ > 0 && !long_line && bytes.size() < bounds::http_head_bytes_max && !line()) {
    searched_ = bytes.size();
    return {};
  }
  const HeadResult step = parse_request_head(bytes, head_);
  if (step.problem) return fail(step.problem);
  if (step.size == 0) {
    has_line_ = has_line_ || line();
    searched_ = bytes.size();
    return {};
  }
  searched_ = 0;
  has_line_ = false;

  const HttpFraming& framing = head_.framing;
  if (framing.content == HttpContent::none || (framing.content == HttpContent::length && framing.length == 0)) {
    content_ = {};
    return {Event::request, step.size};
  }
  if (framing.content == HttpContent::length) {
    if (framing.length > content_bytes_max_) return fail({413, "the content is larger than the server accepts"});
    const auto length = static_cast<std::size_t>(framing.length);
    if (!head_.expects_continue && bytes.size() - step.size >= length) {
      content_ = bytes.substr(step.size, length);
      return {Event::request, step.size + length};
    }
  }
  gathering_ = true;
  body_ = HttpBody(framing, content_bytes_max_);
  head_text_.assign(bytes, 0, step.size);
  gathered_.clear();
  if (head_.expects_continue) return {Event::expect, step.size};
  return gather(bytes, step.size);
}

RequestReader::ReadResult RequestReader::gather(std::string_view bytes, std::size_t used) {
  while (!body_.done()) {
    const HttpBody::BodyPiece step = body_.next(bytes.substr(used));
    if (step.problem) return fail(step.problem);
    if (step.consumed == 0) return {Event::more, used};
    gathered_ += step.content;
    used += step.consumed;
  }
  gathering_ = false;
  const HeadResult again = parse_request_head(head_text_, head_);
  WEIR_ASSERT(again.size == head_text_.size());
  content_ = gathered_;
  return {Event::request, used};
}

ResponseReader::ReadResult ResponseReader::next(std::string_view bytes) {
  std::size_t used = 0;
  while (!in_content_) {
    const HeadResult step = parse_response_head(bytes.substr(used), to_head_, head_);
    problem_ = step.problem;
    if (step.problem) return {Event::problem, used};
    if (step.size == 0) return {Event::more, used};
    const std::string_view text = bytes.substr(used, step.size);
    used += step.size;
    if (head_.status < 200 && head_.status != 101) continue;
    in_content_ = true;
    head_text_ = text;  // and the views that point into it
    (void)parse_response_head(head_text_, to_head_, head_);
    body_ = HttpBody(head_.framing, content_bytes_max_);
  }
  while (!body_.done()) {
    const HttpBody::BodyPiece step = body_.next(bytes.substr(used));
    problem_ = step.problem;
    if (step.problem) return {Event::problem, used};
    if (step.consumed == 0) return {Event::more, used};
    content_ += step.content;
    used += step.consumed;
  }
  return {Event::response, used};
}

ResponseReader::Event ResponseReader::close() noexcept {
  if (in_content_ && body_.complete_at_close()) return Event::response;
  problem_ = {502, "the connection ended before the response was complete"};
  return Event::problem;
}

void ResponseReader::reset(bool to_head) noexcept {
  to_head_ = to_head;
  in_content_ = false;
  content_.clear();
  problem_ = {};
}

}  // namespace weir
