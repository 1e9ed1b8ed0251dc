// The canonical path of a request target for routes and keys, so that a client cannot evade a limit by spelling a path
// differently. The request itself is never changed.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace weir {

// Writes the path of a target into `out` (cleared first): removes scheme, authority, query and fragment, decodes
// escapes of unreserved characters (RFC 3986 §2.3), writes other escapes in upper case, escapes bytes that a path may
// not contain, and a '%' without an escape as %25, drops path parameters (from ';' to the end of the segment), merges
// repeated slashes, removes dot segments and a trailing slash. The result starts with '/'. Idempotent; linear.
void normalize_path(std::string_view target, std::string& out);

// Returns whether the path of a target contains a null character or its escape: servers may end the path there.
bool has_null(std::string_view target) noexcept;

// Returns the n-th segment, counted from 1; empty if there is none. REQUIRES: `path` is normalized.
std::string_view path_segment(std::string_view path, std::size_t n) noexcept;

// Returns the query of a target: after the first '?', without the fragment.
std::string_view query_of(std::string_view target) noexcept;

// Finds the first field `name` of a query (application/x-www-form-urlencoded) and appends its decoded value to `out`.
// Returns false if there is none.
bool find_query_field(std::string_view query, std::string_view name, std::string& out);

// Calls `visit` with every field of a query or form, decoded, until it returns false.
void each_form_field(std::string_view content, const std::function<bool(std::string name, std::string value)>& visit);

// Returns whether the field `name` occurs several times with different values.
bool query_field_differs(std::string_view query, std::string_view name);

}  // namespace weir
