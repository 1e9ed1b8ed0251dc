// Any bytes give an error, an incomplete header, or a header; appending more bytes does not change a header.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/net/proxy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto parsed = weir::ProxyHeader::parse(bytes);
  if (!parsed) return 0;
  if (!*parsed) {
    WEIR_ASSERT(weir::ProxyHeader::wanted(bytes) > 0);
    return 0;
  }
  WEIR_ASSERT((*parsed)->bytes <= size);
  const auto again = weir::ProxyHeader::parse(std::string(bytes) + "more");
  WEIR_ASSERT(again && *again && (*again)->bytes == (*parsed)->bytes && (*again)->client == (*parsed)->client);
  return 0;
}
