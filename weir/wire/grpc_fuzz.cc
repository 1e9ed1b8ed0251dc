// The first message of a body, the same however much follows it; and the texts of fields.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/base/time.h"
#include "weir/wire/grpc.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kMost = 4096;
  grpc::Message message;
  const grpc::Parsed parsed = grpc::parse(bytes, kMost, message);
  if (parsed == grpc::Parsed::whole) {
    std::string again;
    const std::size_t begun = grpc::begin_message(again);
    again += message.bytes;
    grpc::end_message(begun, again);
    WEIR_ASSERT(message.bytes.size() <= kMost && again.substr(1) == bytes.substr(1, again.size() - 1));
    // One byte less is not enough.
    grpc::Message none;
    WEIR_ASSERT(grpc::parse(bytes.substr(0, again.size() - 1), kMost, none) == grpc::Parsed::more);
  }
  if (const auto timeout = grpc::parse_timeout(bytes)) WEIR_ASSERT(*timeout >= Duration::zero());
  std::string escaped;
  grpc::append_escaped(bytes, escaped);
  for (const char c : escaped) WEIR_ASSERT(c >= 0x20 && c <= 0x7e);
  (void)grpc::is_grpc(bytes);
  return 0;
}
