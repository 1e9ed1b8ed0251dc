#include "weir/core/identifier.h"

namespace weir {

std::string identifier_of(const Label& label) {
  return identifier_of(label, label.id);
}

std::string identifier_of(const Label& label, std::string_view shown_id) {
  if (label.key == "global") return "global";
  const std::string_view kind = label.key == "ip" || label.key == "apikey" ? label.key : label.limit;
  if (kind.empty()) return std::string(shown_id);
  std::string identifier(kind);
  return identifier.append(":").append(shown_id);
}

}  // namespace weir
