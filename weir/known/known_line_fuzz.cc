// Any line, from another server or an attacker: no crash, and an accepted line prints back to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "weir/base/assert.h"
#include "weir/known/known_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = weir::parse_line(text);
  if (!read) {
    WEIR_ASSERT(!read.error().detail.empty());
    return 0;
  }
  const auto* const entry = std::get_if<weir::AccessEntry>(&read->what);
  const std::string printed = entry != nullptr ? weir::print_line(*entry, read->block)
                                               : weir::print_line(std::get<weir::Adjustment>(read->what));
  const auto again = weir::parse_line(printed);
  WEIR_ASSERT(again && again->what == read->what && again->block == read->block);
  return 0;
}
