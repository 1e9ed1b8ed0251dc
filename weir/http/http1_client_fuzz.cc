// Any bytes as the responses of a server: no crash, each call ends once, and however the bytes are split, the same
// response or a failure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/http/client_parts_test.h"
#include "weir/http/http1_client.h"

namespace {

using namespace weir::http;

// `flags`: which request, and whether the server closes at the end.
std::string responses_told(std::string_view bytes, std::size_t piece, unsigned flags) {
  CallStates calls;
  ClientShared shared;
  TextOutput out;
  Http1Client client(out, shared);
  TellingOwner owner;
  owner.joins = true;
  CallHead head;
  head.method = (flags & 1) != 0 ? "HEAD" : "POST";
  head.authority = "h";
  if ((flags & 2) != 0) head.upgrade = "x";
  CallState& state = calls.take(head, {"ab", (flags & 6) == 0, {}}, owner, {}, {});
  Call call = state.handle();
  client.begin(state, {});
  out.take();
  client.sent(out.taken, {});

  std::string unread;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    unread += bytes.substr(at, piece);
    const std::string block = unread;  // of its own, so that the sanitizer sees a view that is kept for too long
    unread.erase(0, client.receive(block, {}));
    if (call) call.consumed(std::exchange(owner.unconsumed, 0));
    WEIR_ASSERT(owner.ends <= 1);
  }
  // A tunnel whose incoming direction has ended can still fail.
  const int ends_max = call && state.tunnel ? 2 : 1;
  if ((flags & 8) != 0) client.end_of_input({});
  if ((flags & 16) != 0) client.lost({weir::Fault::unavailable, "lost"});
  for (CallState* const returned : client.take_unprocessed()) returned->fail({returned->why, false, false});
  WEIR_ASSERT(owner.ends <= ends_max && !(call && owner.ends == 1 && !state.tunnel));
  // How much of a broken response is delivered before the failure depends on the reads.
  if (owner.failures > 0) return "failed";
  return owner.take() + (client.can_begin() ? "reusable" : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  WEIR_ASSERT(responses_told(bytes, bytes.size() + 1, data[1]) == responses_told(bytes, 1u + data[0] % 64, data[1]));
  return 0;
}
