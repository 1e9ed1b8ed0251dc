// Any bytes as the frames of a server: no crash, each call ends at most once, and the same events however the bytes are
// split, unless they break the connection.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/http/client_parts_test.h"
#include "weir/http/http2_client.h"

namespace {

using namespace weir::http;

// What the owners of three calls are told, or nothing if the bytes broke the connection.
std::optional<std::string> frames_told(std::string_view bytes, std::size_t piece, bool cancels) {
  CallStates calls;
  ClientShared shared;
  TextOutput out;
  Http2Client client(out, shared);
  std::array<TellingOwner, 3> owners;
  std::array<Call, 3> open;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    owners[i].joins = true;
    CallHead head;
    head.method = "POST";
    head.scheme = "https";
    head.authority = "h";
    CallState& state = calls.take(head, {"body", i != 1, {}}, owners[i], {}, {});
    open[i] = state.handle();
    client.begin(state, {});
  }
  client.fill(0, {});
  out.take();
  client.sent(out.taken, weir::Time{});
  if (cancels) open[0].cancel();
  for (std::size_t at = 0; at < bytes.size() && client.end() == ClientEnd::open; at += piece) {
    const std::string block(bytes.substr(at, piece));
    WEIR_ASSERT(client.receive(block, {}) == block.size());
  }
  client.fill(0, {});
  out.take();
  const bool broken = client.end() != ClientEnd::open;  // also by a frame that nghttp2 answers with GOAWAY
  client.lost({weir::Fault::unavailable, "lost"});
  for (CallState* const returned : client.take_unprocessed()) returned->fail({returned->why, false, false});
  std::string record;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    WEIR_ASSERT(owners[i].ends == (cancels && i == 0 ? 0 : 1));
    record += owners[i].take() + "\n";
  }
  if (broken) return std::nullopt;
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool cancels = data[1] % 2 == 1;
  const std::optional<std::string> whole = frames_told(bytes, bytes.size() + 1, cancels);
  const std::optional<std::string> split = frames_told(bytes, 1u + data[0] % 64, cancels);
  // A read that breaks the connection drops what the same read brought before. Whether a frame breaks it can depend on
  // the split too: after a read that made us reset a stream, nghttp2 skips that stream's frames unchecked.
  WEIR_ASSERT(!whole || !split || whole == split);
  return 0;
}
