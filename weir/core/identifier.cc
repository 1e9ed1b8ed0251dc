#include "weir/core/identifier.h"

namespace weir {
namespace {

constexpr std::size_t kShownBytes = 6;

std::string with_id(const Label& label, std::string_view id) {
  if (label.key == "global") return "global";
  const std::string_view kind = label.key == "ip" || label.key == "apikey" ? label.key : label.limit;
  if (kind.empty()) return std::string(id);
  std::string identifier(kind);
  return identifier.append(":").append(id);
}

}  // namespace

std::string identifier_of(const Label& label) {
  return with_id(label, label.id);
}

std::string shortened(std::string_view secret) {
  return std::string(secret.substr(0, kShownBytes)).append("…");
}

std::string shown_id(const Label& label) {
  return label.secret ? shortened(label.id) : std::string(label.id);
}

std::string shown_identifier(const Label& label) {
  return with_id(label, shown_id(label));
}

}  // namespace weir
