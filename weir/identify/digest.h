// Digests in lower-case hex.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

inline constexpr std::size_t kDigestHexBytes = 64;

// SHA-256 (FIPS 180-4).
std::string sha256_hex(std::string_view bytes);

// Replaces an id of a `hashed` limit wherever it is stored, logged or shown: its HMAC-SHA256 (RFC 2104) under the
// policy's hash_key. Without the key, ids cannot be found by trial.
std::string hashed_id(std::string_view key, std::string_view id);

}  // namespace weir
