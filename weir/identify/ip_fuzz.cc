// Any bytes: parse() agrees with inet_pton(3), and what it accepts reads back from its canonical form.
#include <arpa/inet.h>

#include <cstring>

#include "weir/base/assert.h"
#include "weir/identify/ip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto address = weir::IpAddress::parse(text);

  unsigned char bytes[16];
  const bool valid = std::strlen(text.c_str()) == size &&
                     (inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1);
  WEIR_ASSERT(address.has_value() == valid);
  if (!address) return 0;
  WEIR_ASSERT(weir::IpAddress::parse(address->print()).value() == *address);
  return 0;
}
