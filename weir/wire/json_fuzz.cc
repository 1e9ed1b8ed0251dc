// Any bytes: no crash, bounded nesting, the fast path gives the same result as the full parser, and accepted text
// survives being written and read again.
#include <cstddef>
#include <cstdint>

#include "weir/base/assert.h"
#include "weir/wire/json.h"

namespace {

void write(weir::JsonValue value, weir::JsonWriter& out) {
  switch (value.kind()) {
    case weir::JsonKind::null:
      out.null();
      return;
    case weir::JsonKind::boolean:
      out.boolean(value.boolean());
      return;
    case weir::JsonKind::number:
      out.number(value.number());
      return;
    case weir::JsonKind::string:
      out.string(value.string());
      return;
    case weir::JsonKind::array:
      out.begin_array();
      for (const weir::JsonValue item : value.items()) write(item, out);
      out.end_array();
      return;
    case weir::JsonKind::object:
      out.begin_object();
      for (const weir::JsonValue::Member member : value.members()) write(member.value, out.key(member.key));
      out.end_object();
      return;
  }
}

std::string written(weir::JsonValue value) {
  std::string out;
  weir::JsonWriter writer(out);
  write(value, writer);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static weir::JsonReader reader;
  static weir::JsonReader other;
  const auto value = reader.read(text);
  const auto same = other.read_any(text);
  WEIR_ASSERT(value.has_value() == same.has_value());
  if (value) {
    const std::string once = written(*value);
    WEIR_ASSERT(written(*same) == once);
    const auto again = reader.read(once);
    WEIR_ASSERT(again.has_value());
    WEIR_ASSERT(written(*again) == once);
  } else {
    WEIR_ASSERT(!value.error().detail.empty());
  }
  std::string quoted;
  weir::JsonWriter(quoted).string(text.substr(0, weir::bounds::json_bytes_max / 8));
  WEIR_ASSERT(reader.read(quoted).has_value());
  return 0;
}
