// Any bytes as a TZif file: an error, or a zone whose results are bounded, ordered and consistent.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/base/zone.h"

namespace {

using namespace std::chrono_literals;

void check_around(const weir::Zone& zone, weir::Wall wall) {
  const std::chrono::seconds offset = zone.offset_at(wall);
  WEIR_ASSERT(offset >= -25h && offset <= 26h);
  const weir::Local local = zone.to_local(wall);
  const weir::Wall first = zone.to_wall(local);
  WEIR_ASSERT(first <= wall);
  WEIR_ASSERT(zone.to_local(first) >= local);
  WEIR_ASSERT(zone.to_wall(local + 1s) >= first);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto zone = weir::Zone::parse("Fuzz", text);
  if (!zone) return 0;
  for (std::int64_t hours = -2'000'000; hours <= 2'000'000; hours += 39'999)
    check_around(*zone, weir::Wall{hours * 1h});
  // Instants taken from the bytes, so that changes are hit.
  std::uint32_t recent = 0;
  for (const char byte : text.substr(0, 1024)) {
    recent = recent << 8 | static_cast<std::uint8_t>(byte);
    check_around(*zone, weir::Wall{std::chrono::seconds{static_cast<std::int32_t>(recent)}});
  }
  WEIR_ASSERT(zone->to_wall(weir::Local::min()) <= zone->to_wall(weir::Local::max()));
  return 0;
}
