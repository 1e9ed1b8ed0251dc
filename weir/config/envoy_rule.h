// One rate_limit of a file of envoyproxy/ratelimit: what is written, checked.
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

// Nothing after a complaint.
std::optional<EnvoyRule> read_envoy_rule(const Document& document, NodeId rate_limit, Complaints& complaints);

// Complains about keys that are unknown or written twice. False: there are some, or this is no map.
bool check_envoy_keys(const Document& document, NodeId map, std::string_view what,
                      std::span<const std::string_view> keys, Complaints& complaints);

// A flag of a map: false if it is absent.
bool read_envoy_flag(const Document& document, NodeId map, std::string_view key, Complaints& complaints);

// The map as a JSON object. Plain numbers, true, false and null stay what they are.
std::string to_json(const Document& document, NodeId id);

}  // namespace weir::config
