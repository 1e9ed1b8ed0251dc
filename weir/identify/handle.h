// API keys as shown to operators. A handle identifies a key without revealing it: the first four characters, "…#", and
// the first 12 hex digits of the keyed hash that `hashed` limits use (digest.h): "sk_l…#3f9a12c4d0e1". Entries made by
// handle store the full handle, with all 64 digits.
//
// Keys are passed as they appear in ids (append_part() in attribute.h), so that a key has the same handle everywhere. A
// key of fewer than 12 bytes shows only the hash: "…#3f9a12c4d0e1".
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

// Return the handle of a key for display, and its full handle.
std::string handle_of(std::string_view hash_key, std::string_view apikey);
std::string full_handle_of(std::string_view hash_key, std::string_view apikey);

// Shortens a full handle for display. REQUIRES: is_full_handle(full).
std::string shortened(std::string_view full);

// True for at most four characters, "…#", and 4 to 64 lower-case hex digits. A handle matches the keys whose full
// handle starts with it.
bool is_handle(std::string_view text) noexcept;
bool is_full_handle(std::string_view text) noexcept;
// Returns the visible start of the key. REQUIRES: is_handle(handle).
std::string_view shown_start(std::string_view handle) noexcept;

// Return the id, and the identifier, for display: an API key as its handle. In a composite id the other parts stay
// readable.
std::string shown_id(const Label& label, std::string_view hash_key);
std::string shown_identifier(const Label& label, std::string_view hash_key);

}  // namespace weir
