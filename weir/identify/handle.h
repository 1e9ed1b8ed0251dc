// API keys as operators see them. A handle tells keys apart and names them without showing them: the first four
// characters, "…#", and the first 12 hex digits of the keyed hash that `hashed` limits use (digest.h):
// "sk_l…#3f9a12c4d0e1". A full handle has all 64 digits; it is what entries made by handle store.
//
// Keys are given as they stand in ids (append_part() in attribute.h), so that a key has one handle wherever it occurs.
#pragma once

#include <string>
#include <string_view>

#include "weir/core/answer.h"

namespace weir {

// A key of fewer than 12 bytes shows nothing but the hash: "…#3f9a12c4d0e1".
std::string handle_of(std::string_view hash_key, std::string_view apikey);
std::string full_handle_of(std::string_view hash_key, std::string_view apikey);

// A full handle as it is shown. REQUIRES: is_full_handle(full).
std::string shortened(std::string_view full);

// At most four characters, "…#", and 4 to 64 lower-case hex digits. It means the keys whose full handle starts with it.
bool is_handle(std::string_view text) noexcept;
bool is_full_handle(std::string_view text) noexcept;
// What a key starts with if its handle starts like this. REQUIRES: is_handle(handle).
std::string_view shown_start(std::string_view handle) noexcept;

// The id, and the identifier, as operators see them: an API key as its handle. Of an id with several parts the parts
// that are not the API key stay readable.
std::string shown_id(const Label& label, std::string_view hash_key);
std::string shown_identifier(const Label& label, std::string_view hash_key);

}  // namespace weir
