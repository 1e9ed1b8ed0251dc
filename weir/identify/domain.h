// DNS names: validation, the canonical form, and the part of a name that somebody registered.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/result.h"

namespace weir {

// The lower-case ASCII form of a valid name: 2 to 10 labels of letters, digits and inner hyphens, at most 253 bytes,
// not an IP address, no final dot. A name in another script becomes its A-labels ("bücher.example" is
// "xn--bcher-kva.example"); a label that begins with "xn--" must be a valid A-label (IDNA2008) already. Idempotent.
Result<std::string> canonical_domain(std::string_view name);

// The public suffix and one label more ("www.example.co.uk" is "example.co.uk"), by the Public Suffix List including
// its private section. A name that is itself a suffix is kept as it is. Takes what canonical_domain() takes.
Result<std::string> registered_domain(std::string_view name);

}  // namespace weir
