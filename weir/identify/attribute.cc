#include "weir/identify/attribute.h"

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/identify/digest.h"

namespace weir {

void append_part(std::string& id, std::string_view value) {
  if (value.size() > bounds::id_bytes_max) {
    id.append("%sha256-").append(sha256_hex(value));
    return;
  }
  for (const char c : value) {
    if (c == ':') {
      id += "%3A";
    } else if (c == '%') {
      id += "%25";
    } else {
      id += c;
    }
  }
}

std::string join_parts(std::span<const std::string_view> values) {
  WEIR_ASSERT(!values.empty());
  std::string id;
  append_part(id, values.front());
  for (const std::string_view value : values.subspan(1)) {
    id += ':';
    append_part(id, value);
  }
  return id;
}

}  // namespace weir
