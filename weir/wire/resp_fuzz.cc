// Any bytes, as commands and as replies: every parser returns, with the same result however the bytes are split.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"
#include "weir/wire/resp.h"

namespace {

using weir::resp::Parsed;

// Returns the messages as text, then why parsing stopped.
using Messages = std::vector<std::string>;

std::string described(const weir::resp::Request& request) {
  std::string text = "command";
  for (const std::string_view argument : request.arguments()) text.append(" ").append(argument);
  return text;
}

std::string described(const weir::resp::Reply& reply) {
  std::string text = "reply";
  WEIR_ASSERT(reply.root().skip == reply.values().size());
  for (const weir::resp::Reply::Value& value : reply.values()) {
    text += ' ' + std::to_string(static_cast<int>(value.type)) + ' ' + std::to_string(value.integer) + ' ' +
            std::to_string(value.count) + ' ' + std::to_string(value.skip) + ' ';
    text += value.text;
  }
  return text;
}

// Feeds the bytes in pieces of `piece(i)` bytes. Each buffer is a separate block, so that the sanitizer detects a read
// past its end.
template <class Parser, class Piece>
Messages decode(std::string_view bytes, Piece piece) {
  Messages messages;
  Parser parser;
  std::size_t begin = 0;
  std::size_t end = 0;
  while (end < bytes.size()) {
    end += std::min(piece(end), bytes.size() - end);
    while (true) {
      const std::unique_ptr<char[]> block(new char[end - begin]);
      bytes.copy(block.get(), end - begin, begin);
      const Parsed parsed = parser.parse({block.get(), end - begin});
      if (parsed == Parsed::more) break;
      if (parsed == Parsed::broken) {
        messages.push_back("broken " + std::string(parser.problem()));
        return messages;
      }
      WEIR_ASSERT(parser.size() > 0 && parser.size() <= end - begin);
      messages.push_back(described(parser));
      begin += parser.size();
    }
  }
  messages.push_back("more " + std::to_string(bytes.size() - begin));
  return messages;
}

template <class Parser>
void check(std::string_view bytes, std::uint64_t seed) {
  const Messages whole = decode<Parser>(bytes, [&](std::size_t) { return bytes.size(); });
  const Messages pieces = decode<Parser>(bytes, [&seed](std::size_t) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(seed >> 33) % 23 + 1;
  });
  WEIR_ASSERT(whole == pieces);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::uint64_t seed = size == 0 ? 0 : size * 257 + data[size - 1];
  check<weir::resp::Request>(bytes, seed);
  check<weir::resp::Reply>(bytes, seed);
  return 0;
}
