// DNS names: validation, canonical form, and the registered domain.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir {

// Returns the lower-case ASCII form of a valid name: 2 to 10 labels of letters, digits and inner hyphens, at most 253
// bytes, not an IP address, no final dot. An internationalized name is converted to A-labels ("bücher.example" is
// "xn--bcher-kva.example"); a label that starts with "xn--" must be a valid A-label (IDNA2008). Idempotent.
Result<std::string> canonical_domain(std::string_view name);

// Returns the public suffix plus one label ("www.example.co.uk" is "example.co.uk"), by the Public Suffix List
// including its private section. A name that is itself a suffix is returned unchanged. Accepts the same names as
// canonical_domain().
Result<std::string> registered_domain(std::string_view name);

}  // namespace weir
