// Checks the `external` sections, which name services that decide limits' numbers, and attaches those services to
// limits.
#pragma once

#include <string_view>

#include "weir/base/result.h"
#include "weir/config/document.h"
#include "weir/config/limits.h"

namespace weir::config {

// "http://limits:8080/v1", "https://10.0.0.1". The Error quotes the URL and names the rule.
Result<void> check_url(std::string_view url);

// Checks the top-level section and those of limits: exactly one of http and grpc, a valid URL or address, a known
// limit. A section that is empty or has `enabled: false` may be incomplete, but the values it has are checked.
// REQUIRES: the tree was checked.
void check_external(const Document& document, NodeId root, const Limits& limits, Complaints& complaints);

// Attaches its service to every limit that an enabled section names. REQUIRES: the sections were checked, and the
// secrets in them resolved.
void read_external(const Document& document, NodeId root, Limits& limits);

}  // namespace weir::config
