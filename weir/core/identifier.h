// A client's name in responses, lists, events and logs. For what operators may see of it, see identify/handle.h.
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

// "ip:203.0.113.9", "apikey:…", "global", "per-tenant:acme"; for a bucket that the caller supplied, its key. Show it
// only to the client itself: it contains the full API key.
std::string identifier_of(const Label& label);
// The same with `shown_id` in place of the id.
std::string identifier_of(const Label& label, std::string_view shown_id);

}  // namespace weir
