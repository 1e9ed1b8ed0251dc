// Any bytes as a request and as a response: no crash, no read past the end, and the same head, content and problem
// however the bytes are split.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/wire/http1.h"
#include "weir/wire/http1_body.h"

namespace {

// Small enough for the fuzzer to reach.
constexpr std::size_t kContentMax = 64;

// Calls `step` with the bytes from the first unconsumed one on, `piece` more each time it consumes nothing, until it
// returns true or all were passed. Each call gets a block of its own, so that the sanitizer detects stale views.
template <typename Step>
void feed(std::string_view& bytes, std::size_t piece, Step step) {
  for (std::size_t end = std::min(piece, bytes.size());;) {
    const std::unique_ptr<char[]> block(new char[end]);
    std::copy_n(bytes.data(), end, block.get());
    std::size_t consumed = 0;
    const bool done = step(std::string_view(block.get(), end), consumed);
    WEIR_ASSERT(consumed <= end);
    bytes.remove_prefix(consumed);
    end -= consumed;
    if (done || (consumed == 0 && end == bytes.size())) return;
    if (consumed == 0) end = std::min(end + piece, bytes.size());
  }
}

std::string print(const weir::HttpProblem& problem) {
  WEIR_ASSERT(problem.status >= 400 && !problem.sentence.empty());
  return std::to_string(problem.status) + std::string(problem.sentence);
}

void print(const weir::HttpHeaders& headers, std::string& seen) {
  for (const weir::HttpHeader& header : headers.all())
    seen.append(header.name).append("=").append(header.value).append(";");
}

std::string content_of(std::string_view bytes, std::size_t piece, const weir::HttpFraming& framing) {
  weir::HttpBody body(framing, kContentMax);
  std::string seen;
  std::string content;
  feed(bytes, piece, [&](std::string_view block, std::size_t& consumed) {
    if (body.done()) return true;
    const auto got = body.next(block);
    consumed = got.consumed;
    content += got.content;
    if (got.problem) seen = print(got.problem);
    return body.done() || got.problem;
  });
  WEIR_ASSERT(content.size() <= kContentMax);
  if (!seen.empty()) return seen;  // how much came before the problem depends on the pieces
  for (const weir::HttpHeader& trailer : body.trailers()) seen.append(trailer.name).append(trailer.value);
  return seen + (body.complete_at_close() ? " complete " : " cut ") + content;
}

// `parse` is given the bytes so far and appends what it found of a complete head; returns its framing.
template <typename Head, typename Parse, typename Describe>
std::string message(std::string_view bytes, std::size_t piece, Parse parse, Describe describe) {
  std::string seen;
  weir::HttpFraming framing;
  bool complete = false;
  feed(bytes, piece, [&](std::string_view block, std::size_t& consumed) {
    Head head;
    const weir::HeadResult result = parse(block, head);
    if (result.problem) seen = print(result.problem);
    if (result.size == 0) return static_cast<bool>(result.problem);
    consumed = result.size;
    complete = true;
    framing = head.framing;
    describe(head, seen);
    print(head.headers, seen);
    return true;
  });
  return complete ? seen + content_of(bytes, piece, framing) : seen;
}

std::string request(std::string_view bytes, std::size_t piece) {
  return message<weir::RequestHead>(
      bytes, piece, [](std::string_view block, auto& head) { return weir::parse_request_head(block, head); },
      [](const auto& head, std::string& seen) {
        seen.append(head.method).append(" ").append(head.path).append("?").append(head.query).append(" ");
      });
}

std::string response(std::string_view bytes, std::size_t piece, bool to_head) {
  return message<weir::ResponseHead>(
      bytes, piece, [&](std::string_view block, auto& head) { return weir::parse_response_head(block, to_head, head); },
      [](const auto& head, std::string& seen) {
        seen.append(std::to_string(head.status)).append(" ").append(head.reason).append(" ");
      });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  WEIR_ASSERT(request(bytes, bytes.size() + 1) == request(bytes, piece));
  const bool to_head = data[0] % 2 == 1;
  WEIR_ASSERT(response(bytes, bytes.size() + 1, to_head) == response(bytes, piece, to_head));
  return 0;
}
