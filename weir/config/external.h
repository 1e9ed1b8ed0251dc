// The sections `external`: what a service that decides a limit's numbers must have, and what is made of it.
#pragma once

#include <string_view>

#include "weir/base/result.h"
#include "weir/config/document.h"
#include "weir/config/limits.h"

namespace weir::config {

// "http://limits:8080/v1", "https://10.0.0.1". The Error quotes the URL and says the rule.
Result<void> check_url(std::string_view url);

// The section at the top level, and those of limits: exactly one of http and grpc, a valid URL or address, a known
// limit. A section that is empty, or says `enabled: false`, may lack what it needs, but what it has is checked.
// REQUIRES: the tree was checked.
void check_external(const Document& document, NodeId root, const Limits& limits, Complaints& complaints);

// Gives every limit that an enabled section names its service. REQUIRES: the sections were checked, and the secrets in
// them resolved.
void read_external(const Document& document, NodeId root, Limits& limits);

}  // namespace weir::config
