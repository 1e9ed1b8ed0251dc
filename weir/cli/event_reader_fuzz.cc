// Any bytes, whole and byte by byte: the same events, and never an event longer than its bound.
#include "weir/cli/event_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto read = [&](std::size_t step) {
    std::string events;
    weir::cli::EventReader reader([&](std::string_view name, std::string_view content) {
      WEIR_ASSERT(content.size() <= weir::bounds::event_queue_bytes_max);
      events.append(name).append("=").append(content).append(";");
    });
    for (std::size_t at = 0; at < text.size(); at += step) {
      if (!reader.receive(text.substr(at, step))) return std::string("too long");
    }
    return events;
  };
  WEIR_ASSERT(read(text.empty() ? 1 : text.size()) == read(1));
  return 0;
}
