// A format, a newline and an id, any bytes. An accepted format prints back; an accepted id has stable canonical and
// readable forms of the same bucket.
#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/identify/id_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t newline = text.find('\n');
  const std::string_view spelling = text.substr(0, newline);
  const auto shape = weir::IdShape::parse(spelling);
  if (!shape) return 0;
  WEIR_ASSERT(shape->spelling() == spelling);
  WEIR_ASSERT(shape->parts().size() <= weir::bounds::id_parts_max);
  if (newline == text.npos) return 0;

  const std::string_view id = text.substr(newline + 1);
  const auto canonical = shape->canonical(id);
  const auto display = shape->display(id);
  WEIR_ASSERT(canonical.has_value() == display.has_value());
  if (!canonical) return 0;
  WEIR_ASSERT(shape->canonical(*canonical).value() == *canonical);
  WEIR_ASSERT(shape->display(*display).value() == *display);
  WEIR_ASSERT(shape->canonical(*display).value() == *canonical);
  return 0;
}
