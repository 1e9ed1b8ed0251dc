// Any address text gives an error or an address that prints as text that parses to the same address.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/net/socket.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto address = weir::Address::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!address) {
    WEIR_ASSERT(!address.error().detail.empty());
    return 0;
  }
  const auto again = weir::Address::parse(address->print());
  WEIR_ASSERT(again && *again == *address);
  return 0;
}
