// What a client is called in responses, lists, events and logs. What operators may see of it: identify/handle.h.
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

// "ip:203.0.113.9", "apikey:…", "global", "per-tenant:acme"; of a bucket of the caller's own, its key. For the client
// itself: an API key is in full.
std::string identifier_of(const Label& label);
// The same with another text in place of the id.
std::string identifier_of(const Label& label, std::string_view shown_id);

}  // namespace weir
