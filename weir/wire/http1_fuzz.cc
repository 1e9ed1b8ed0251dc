// Any bytes as requests and as responses: no crash, no read past the end, and the same messages and problem however the
// bytes are split.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/wire/http1_reader.h"

namespace {

// Small enough for the fuzzer to reach.
constexpr std::size_t kContentMax = 64;

void tell(const weir::HttpHeaders& headers, std::string& seen) {
  for (const weir::HttpHeader& header : headers.all())
    seen.append(header.name).append("=").append(header.value).append(";");
}

// Returns everything that was read, as text. Uses a new block per call, so that the sanitizer detects stale views.
std::string requests(std::string_view bytes, std::size_t piece) {
  weir::RequestHead head;
  weir::RequestReader reader(head, kContentMax);
  std::string seen;
  std::size_t used = 0;
  std::size_t end = 0;
  for (;;) {
    const std::size_t size = end - used;
    const std::unique_ptr<char[]> block(new char[size]);
    std::copy_n(bytes.data() + used, size, block.get());
    const auto step = reader.next({block.get(), size});
    WEIR_ASSERT(step.consumed <= size);
    used += step.consumed;
    switch (step.event) {
      case weir::RequestReader::Event::more:
        if (end == bytes.size()) return seen;
        end = std::min(end + piece, bytes.size());
        break;
      case weir::RequestReader::Event::problem:
        WEIR_ASSERT(reader.problem().status >= 400 && !reader.problem().sentence.empty());
        return seen + std::to_string(reader.problem().status) + std::string(reader.problem().sentence);
      case weir::RequestReader::Event::expect:
        seen += "expect ";
        break;
      case weir::RequestReader::Event::request:
        WEIR_ASSERT(reader.content().size() <= kContentMax);
        seen.append(head.method).append(" ").append(head.path).append("?").append(head.query).append(" ");
        tell(head.headers, seen);
        seen.append(reader.content()).append("\n");
        reader.forget();
        break;
    }
  }
}

std::string responses(std::string_view bytes, std::size_t piece, bool to_head) {
  weir::ResponseReader reader(to_head, kContentMax);
  std::string seen;
  std::size_t used = 0;
  std::size_t end = 0;
  for (;;) {
    const std::string block(bytes.substr(used, end - used));
    const auto step = reader.next(block);
    used += step.consumed;
    switch (step.event) {
      case weir::ResponseReader::Event::more:
        if (end == bytes.size()) {
          return seen +
                 (reader.close() == weir::ResponseReader::Event::response ? std::string(reader.content()) : "cut");
        }
        end = std::min(end + piece, bytes.size());
        break;
      case weir::ResponseReader::Event::problem:
        return seen + std::to_string(reader.problem().status) + std::string(reader.problem().sentence);
      case weir::ResponseReader::Event::response:
        seen.append(std::to_string(reader.head().status)).append(" ").append(reader.head().reason).append(" ");
        tell(reader.head().headers, seen);
        seen.append(reader.content()).append("\n");
        reader.reset(to_head);
        break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  WEIR_ASSERT(requests(bytes, bytes.size() + 1) == requests(bytes, piece));
  const bool to_head = data[0] % 2 == 1;
  WEIR_ASSERT(responses(bytes, bytes.size() + 1, to_head) == responses(bytes, piece, to_head));
  return 0;
}
