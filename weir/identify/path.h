// The path of a request target in the one form that routes and keys see, so that no spelling of a path gets around a
// limit. The request itself is never changed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

// Writes the path of a target into `out` (cleared first): scheme, authority, query and fragment cut off, escapes of
// unreserved characters decoded (RFC 3986 §2.3), other escapes in upper case, bytes that no path may have as they are
// escaped, a '%' that begins no escape as %25, doubled slashes merged, then dot segments removed. Always begins with
// '/'. Idempotent; linear.
void normalise_path(std::string_view target, std::string& out);

// The n-th segment, counted from 1; empty if there is none. REQUIRES: `path` is normalised.
std::string_view path_segment(std::string_view path, std::size_t n) noexcept;

// The query of a target: behind the first '?', without the fragment.
std::string_view query_of(std::string_view target) noexcept;

// Finds `name` among the fields of a query (application/x-www-form-urlencoded) and appends its decoded value to `out`.
// The first one counts. False: there is none.
bool find_query_field(std::string_view query, std::string_view name, std::string& out);

}  // namespace weir
