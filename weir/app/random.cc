#include "weir/app/random.h"

#include <sys/random.h>

#include "weir/base/ascii.h"

namespace weir::app {

Result<std::string> random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(size)) return bytes;
  return Error{Fault::unavailable, "the system gives no random bytes"};
}

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_hex(static_cast<unsigned char>(byte), out);
  return out;
}

}  // namespace weir::app
