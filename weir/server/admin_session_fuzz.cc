// Bytes of a stranger, cut in two at a place the input chooses: never a crash, and the same answer as uncut.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/server/admin_session.h"

namespace {

std::string talk(weir::AdminFront& front, std::string_view first, std::string_view second) {
  weir::AdminSession session(front);
  weir::Queries queries;
  std::string out;
  std::string pending;
  for (const std::string_view piece : {first, second}) {
    pending += piece;
    const auto taken = session.receive(pending, queries, out);
    if (!taken || session.finished()) return out;
    pending.erase(0, *taken);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  weir::AdminFront front;
  front.metrics = [] { return std::string("weir_up 1\n"); };
  front.ready = [] { return true; };
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = bytes.size() * data[0] / 256;
  WEIR_ASSERT(talk(front, bytes, "") == talk(front, bytes.substr(0, cut), bytes.substr(cut)));
  return 0;
}
