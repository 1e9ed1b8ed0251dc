// Any bytes as the frames of a server: no crash, each call ends at most once, and the same events however the bytes are
// split.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/http/client_parts_test.h"
#include "weir/http/http2_client.h"

namespace {

using namespace weir::http;

std::string frames_told(std::string_view bytes, std::size_t piece, bool cancels) {
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
  client.lost({weir::Fault::unavailable, "lost"});
  for (CallState* const returned : client.take_unprocessed()) returned->fail({returned->why, false, false});
  std::string told;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    WEIR_ASSERT(owners[i].ends == (cancels && i == 0 ? 0 : 1));
    told += owners[i].take() + "\n";
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool cancels = data[1] % 2 == 1;
  // Not compared: a read that breaks the connection drops what the same read had brought before.
  (void)frames_told(bytes, bytes.size() + 1, cancels);
  (void)frames_told(bytes, 1u + data[0] % 64, cancels);
  return 0;
}
