// Any line is read or refused with a message, and everything read is in the range that a replay accepts.
#include <cstddef>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/simulate/haproxy_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weir::simulate::HaproxyLog reader(weir::simulate::ReaderOptions{});
  weir::simulate::LogLine line;
  const auto read = reader.read({reinterpret_cast<const char*>(data), size}, line);
  if (!read) {
    WEIR_ASSERT(!read.error().detail.empty());
    return 0;
  }
  WEIR_ASSERT(line.time.time_since_epoch() >= weir::Duration::zero());
  WEIR_ASSERT(line.resolution > weir::Duration::zero() && line.resolution <= std::chrono::seconds{1});
  WEIR_ASSERT(line.counted.size() <= weir::bounds::charges_max);
  return 0;
}
