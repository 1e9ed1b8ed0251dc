// What a client is called where people read it: in answers, lists, events and logs.
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

// "ip:203.0.113.9", "apikey:…", "global", "per-tenant:acme"; of a bucket of the caller's own, its key. For the client
// itself: an API key is in full.
std::string identifier_of(const Label& label);

// "ak_9f2…": enough to recognise an API key, too little to use it.
std::string shortened(std::string_view secret);

// The id, and the identifier, for everybody else: what holds an API key is shortened.
std::string shown_id(const Label& label);
std::string shown_identifier(const Label& label);

}  // namespace weir
