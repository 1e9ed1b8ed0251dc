// Any bytes from a server, split at a position that the input chooses: no crash, the same outcome as unsplit, and every
// command ends exactly once.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/redis/redis_client.h"

namespace {

constexpr weir::redis::Script kScript{"return 1", "0123456789012345678901234567890123456789"};
constexpr std::size_t kCommands = 4;

struct Journal : weir::redis::RedisClient::Replies {
  std::array<int, kCommands> ends{};
  std::string text;

  void replied(weir::redis::Tag tag, const weir::resp::Reply& reply) override {
    ++ends[tag];
    text += std::to_string(tag) + std::string(reply.root().text) + '\n';
  }
  void lost(weir::redis::Tag tag, weir::redis::Lost how) override {
    ++ends[tag];
    text += std::to_string(tag) + std::to_string(static_cast<int>(how)) + '\n';
  }
  void pushed(const weir::resp::Reply&) override { text += "push\n"; }
};

std::string talk(std::string_view first, std::string_view second, bool greet) {
  Journal journal;
  weir::redis::RedisClient client({.password = "p", .db = 1, .script = kScript}, journal);
  client.open();
  if (greet) {
    const std::string agreed = "%0\r\n+OK\r\n$40\r\n" + std::string(kScript.sha) + "\r\n$0\r\n\r\n";
    WEIR_ASSERT(client.receive(agreed).has_value() && client.is_ready());
  }
  std::size_t sent = 0;
  constexpr std::array<std::string_view, 3> kCommand = {"EVALSHA", kScript.sha, "0"};
  for (; sent < kCommands; ++sent) {
    if (!client.send(sent, kCommand, weir::Time{})) break;
  }
  bool goes_on = true;
  for (const std::string_view piece : {first, second}) goes_on = goes_on && client.receive(piece).has_value();
  if (!goes_on) journal.text += "broken\n";
  client.expire(weir::Time{});
  client.close();
  for (std::size_t i = 0; i < kCommands; ++i) WEIR_ASSERT(journal.ends[i] == (i < sent ? 1 : 0));
  return journal.text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = bytes.size() * data[0] / 256;
  const bool greet = data[1] % 2 == 0;
  WEIR_ASSERT(talk(bytes, "", greet) == talk(bytes.substr(0, cut), bytes.substr(cut), greet));
  return 0;
}
