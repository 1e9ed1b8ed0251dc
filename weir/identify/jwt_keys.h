// The public keys that tokens are verified with: a JWK set (RFC 7517). The key decides the algorithm: RSA RS256, P-256
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

// The bytes of base64url without padding (RFC 7515 §2), in its one spelling; false if it is anything else.
bool decode_base64url(std::string_view text, std::string& bytes);

// Immutable and cheap to copy; copies share the keys, so any thread may use one.
class JwtKeys {
 public:
  JwtKeys() = default;  // none

  // Keys for other purposes and of other kinds are skipped. Errors: no JWK set, a malformed key, an `oct` key, RSA
  // below 2048 or above 8192 bits, one kid twice, more than bounds::jwt_keys_max keys, or no key that can be used.
  static Result<JwtKeys> parse(std::string_view jwks);

  struct Key {
    std::string kid;  // empty: none
    JwtAlgorithm algorithm = JwtAlgorithm::rs256;
    std::shared_ptr<void> handle;  // an EVP_PKEY

    // Whether the key signed the text. Thread-safe.
    bool verifies(std::string_view text, std::string_view signature) const;
  };
  std::span<const Key> keys() const noexcept { return keys_ == nullptr ? std::span<const Key>{} : *keys_; }

 private:
  std::shared_ptr<const std::vector<Key>> keys_;
};

}  // namespace weir
