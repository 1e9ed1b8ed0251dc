#include "weir/identify/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <limits>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"

namespace weir {
namespace {

using Digest = std::array<unsigned char, kDigestHexBytes / 2>;

std::string hex(const Digest& digest) {
  std::string text;
  text.reserve(kDigestHexBytes);
  for (const unsigned char byte : digest) append_hex(byte, text);
  return text;
}

const unsigned char* octets(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Digest digest;
  unsigned size = 0;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  WEIR_ASSERT(ok == 1 && size == digest.size());
  return hex(digest);
}

std::string hashed_id(std::string_view key, std::string_view id) {
  WEIR_ASSERT(key.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  // The library takes a null key as "the previous key", and an empty view may be null.
  const std::string_view given = key.empty() ? std::string_view("") : key;
  Digest digest;
  unsigned size = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), given.data(), static_cast<int>(given.size()), octets(id), id.size(), digest.data(), &size);
  WEIR_ASSERT(made != nullptr && size == digest.size());
  return hex(digest);
}

}  // namespace weir
