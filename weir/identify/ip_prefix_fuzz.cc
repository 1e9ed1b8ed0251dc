// Any bytes: an accepted prefix reads back from its canonical form, contains its own address, and has no bit set after
// it.
#include "weir/base/assert.h"
#include "weir/identify/ip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto prefix = weir::IpPrefix::parse({reinterpret_cast<const char*>(data), size});
  if (!prefix) {
    WEIR_ASSERT(!prefix.error().detail.empty());
    return 0;
  }
  WEIR_ASSERT(weir::IpPrefix::parse(prefix->print()).value() == *prefix);
  WEIR_ASSERT(prefix->contains(prefix->address()));
  WEIR_ASSERT(prefix->bits() >= 0 && prefix->bits() <= prefix->address().width());
  WEIR_ASSERT(weir::IpPrefix::of(prefix->address(), prefix->bits()) == *prefix);
  return 0;
}
