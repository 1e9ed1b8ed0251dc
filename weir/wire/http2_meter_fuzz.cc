// Any bytes through the meter: what passes is a prefix of them, the same one however they are split, and never ends
// inside a frame header.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/wire/http2_meter.h"

namespace {

constexpr std::size_t kPreface = 24;

struct Passed {
  std::string bytes;
  weir::Http2Meter::Flood flood;
};

// Positions that are inside a frame header: nothing may be cut there.
std::set<std::size_t> inside_headers(std::string_view bytes) {
  std::set<std::size_t> out;
  for (std::size_t at = kPreface; at + weir::kHttp2FrameHeaderBytes <= bytes.size();) {
    for (std::size_t i = 1; i < weir::kHttp2FrameHeaderBytes; ++i) out.insert(at + i);
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
    at += weir::kHttp2FrameHeaderBytes + (byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2));
  }
  return out;
}

Passed pass(std::string_view bytes, std::size_t piece, const std::set<std::size_t>& inside) {
  weir::Http2Meter meter(kPreface);
  const weir::Time now{};
  std::string out;
  std::size_t given = 0;
  while (given < bytes.size()) {
    const std::string part(bytes.substr(given, piece));
    given += part.size();
    std::string_view rest = part;
    for (auto next = meter.next(rest, now); !next.empty(); next = meter.next(rest, now)) {
      out += next;
      WEIR_ASSERT(!inside.contains(out.size()));
    }
    if (meter.flood() != weir::Http2Meter::Flood::none) break;
    WEIR_ASSERT(rest.empty() && given - out.size() < weir::kHttp2FrameHeaderBytes);
  }
  return {out, meter.flood()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::set<std::size_t> inside = inside_headers(bytes);
  const Passed whole = pass(bytes, bytes.size() + 1, inside);
  const Passed parts = pass(bytes, 1 + data[0] % 64, inside);
  WEIR_ASSERT(bytes.starts_with(whole.bytes));
  WEIR_ASSERT(whole.bytes == parts.bytes && whole.flood == parts.flood);
  return 0;
}
