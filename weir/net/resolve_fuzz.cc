// Any target text gives an error or a target that prints as text that parses to the same target.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/net/resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto target = weir::Target::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!target) {
    WEIR_ASSERT(!target.error().detail.empty());
    return 0;
  }
  const auto again = weir::Target::parse(target->print());
  WEIR_ASSERT(again && *again == *target);
  return 0;
}
