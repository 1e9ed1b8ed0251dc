// Any file content: no crash, and accepted content prints back to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/known/known_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto kept = weir::parse_known(text);
  if (!kept) {
    WEIR_ASSERT(!kept.error().detail.empty());
    return 0;
  }
  const auto again = weir::parse_known(weir::print_known(*kept));
  WEIR_ASSERT(again && *again == *kept);
  return 0;
}
