// From values of a request to the id of a bucket. The trap here is two different requests that share one bucket because
// their parts, joined, read the same: ("a:b", "c") and ("a", "b:c"). Escaping keeps every list of parts apart.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir {

// Appends a value as one part of an id: ':' as %3A, '%' as %25. A value over bounds::id_bytes_max becomes "%sha256-"
// and its hash in hex: no escaped value begins like that, so nobody can send the hash and share the bucket.
void append_part(std::string& id, std::string_view value);

// The parts as one id, joined by ':'. Lists of different parts never give the same text (but for SHA-256 collisions).
// There must be at least one part.
std::string join_parts(std::span<const std::string_view> values);

}  // namespace weir
