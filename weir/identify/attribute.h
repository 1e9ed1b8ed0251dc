// Builds the id of a bucket from values of a request. Escapes each value, so that ("a:b", "c") and ("a", "b:c") get
// different ids and never share a bucket.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir {

// Appends a value as one part of an id, with ':' as %3A and '%' as %25. A value over bounds::id_bytes_max becomes
// "%sha256-" and its hash in hex; no escaped value starts like that, so a client cannot send the hash and share the
// bucket.
void append_part(std::string& id, std::string_view value);

// Joins the parts with ':'. Different lists never give the same text (except for SHA-256 collisions). Requires at least
// one part.
std::string join_parts(std::span<const std::string_view> values);

}  // namespace weir
