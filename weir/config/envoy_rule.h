// Parses and checks one rate_limit section of an envoyproxy/ratelimit file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/config/document.h"
#include "weir/core/limit.h"

namespace weir::config {

struct EnvoyRule {
  Count count = 0;
  Duration unit{};
  std::uint32_t multiplier = 1;
  bool unlimited = false;
  std::string name;
  std::vector<std::string> replaces;

  Duration period() const noexcept { return unit * multiplier; }
};

// Returns nullopt after a complaint.
std::optional<EnvoyRule> read_envoy_rule(const Document& document, NodeId rate_limit, Complaints& complaints);

// Complains about unknown and duplicate keys. Returns false if there are any, or if it is not a map.
bool check_envoy_keys(const Document& document, NodeId map, std::string_view what,
                      std::span<const std::string_view> keys, Complaints& complaints);

// Returns the value of a flag; false if it is absent.
bool read_envoy_flag(const Document& document, NodeId map, std::string_view key, Complaints& complaints);

// Converts a map to a JSON object. Unquoted numbers, true, false and null keep their type.
std::string to_json(const Document& document, NodeId id);

}  // namespace weir::config
