// Any text gives an error or a URL that prints as text that parses to the same URL.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/net/http_url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto url = weir::HttpUrl::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!url) {
    WEIR_ASSERT(!url.error().detail.empty());
    return 0;
  }
  const auto again = weir::HttpUrl::parse(url->print());
  WEIR_ASSERT(again && *again == *url);
  return 0;
}
