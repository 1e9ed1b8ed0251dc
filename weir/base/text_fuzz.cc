// Any bytes: every parser returns, and an accepted value prints and parses back to itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto n = weir::parse_integer(text)) {
    WEIR_ASSERT(*weir::parse_integer(std::to_string(*n)) == *n);
  }
  if (const auto d = weir::parse_duration(text)) {
    WEIR_ASSERT(*d >= weir::Duration::zero());
    WEIR_ASSERT(*weir::parse_duration(weir::print_duration(*d)) == *d);
  }
  if (const auto d = weir::parse_seconds(text)) {
    WEIR_ASSERT(*d >= weir::Duration::zero());
    WEIR_ASSERT(*weir::parse_seconds(weir::print_seconds(*d)) == *d);
  }
  if (const auto rate = weir::parse_rate(text)) {
    WEIR_ASSERT(rate->count > 0 && rate->period > weir::Duration::zero());
  }
  if (const auto n = weir::parse_size(text)) {
    WEIR_ASSERT(*n >= 0);
  }
  WEIR_ASSERT(weir::quote(text).size() >= 2);
  return 0;
}
