// The public keys that verify tokens: a JWK set (RFC 7517). The key type determines the algorithm: RSA RS256, P-256
// ES256, Ed25519 EdDSA.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"

namespace weir {

enum class JwtAlgorithm : unsigned char { rs256, es256, eddsa, hs256 };

// "RS256", "ES256", "EdDSA", "HS256".
std::string_view print(JwtAlgorithm algorithm) noexcept;

// Decodes base64url without padding (RFC 7515 §2) in its canonical form; returns false for anything else.
bool decode_base64url(std::string_view text, std::string& bytes);

// Immutable and cheap to copy; copies share the keys. Thread-safe.
class JwtKeys {
 public:
  JwtKeys() = default;  // none

  // Skips keys for other purposes and of other types. Errors: not a JWK set, a malformed key, an `oct` key, RSA below
  // 2048 or above 8192 bits, a repeated kid, more than bounds::jwt_keys_max keys, or no usable key.
  static Result<JwtKeys> parse(std::string_view jwks);

  struct Key {
    std::string kid;  // empty: none
    JwtAlgorithm algorithm = JwtAlgorithm::rs256;
    std::shared_ptr<void> handle;  // an EVP_PKEY

    // Returns whether the key signed the text. Thread-safe.
    bool verifies(std::string_view text, std::string_view signature) const;
  };
  std::span<const Key> keys() const noexcept { return keys_ == nullptr ? std::span<const Key>{} : *keys_; }

 private:
  std::shared_ptr<const std::vector<Key>> keys_;
};

}  // namespace weir
