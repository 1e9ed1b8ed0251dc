#include "weir/identify/jwt_keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/wire/json.h"

namespace weir {
namespace {

template <auto Free>
struct Release {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};
using Number = std::unique_ptr<BIGNUM, Release<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Release<OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, Release<OSSL_PARAM_free>>;
using KeyOperation = std::unique_ptr<EVP_PKEY_CTX, Release<EVP_PKEY_CTX_free>>;
using Verification = std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX_free>>;
using EcSignature = std::unique_ptr<ECDSA_SIG, Release<ECDSA_SIG_free>>;
using Handle = std::shared_ptr<void>;

constexpr std::size_t kCoordinateBytes = 32;  // of P-256, and of an Ed25519 key
constexpr int kRsaBitsMin = 2048;
constexpr int kRsaBitsMax = 8192;

const unsigned char* bytes_of(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Handle own(EVP_PKEY* key) {
  return key == nullptr ? Handle{} : Handle(key, [](void* p) { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); });
}

Handle make_key(const char* type, OSSL_PARAM_BLD* builder) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder));
  const KeyOperation context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1) return {};
  if (EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) return {};
  Handle made = own(key);
  const KeyOperation check(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  return check != nullptr && EVP_PKEY_public_check(check.get()) == 1 ? made : Handle{};
}

std::string_view text_of(JsonValue key, std::string_view name) {
  const auto found = key.find(name);
  return found && found->is(JsonKind::string) ? found->string() : std::string_view{};
}

std::optional<std::string> bytes_in(JsonValue key, std::string_view name) {
  std::string bytes;
  const std::string_view text = text_of(key, name);
  if (text.empty() || !decode_base64url(text, bytes)) return std::nullopt;
  return bytes;
}

Result<Handle> rsa_key(JsonValue key) {
  const auto n = bytes_in(key, "n");
  const auto e = bytes_in(key, "e");
  if (!n || !e || e->size() > 8) return Error{Fault::invalid, "n and e must be base64url numbers"};
  const Number modulus(BN_bin2bn(bytes_of(*n), static_cast<int>(n->size()), nullptr));
  const Number exponent(BN_bin2bn(bytes_of(*e), static_cast<int>(e->size()), nullptr));
  const int bits = modulus == nullptr ? 0 : BN_num_bits(modulus.get());
  if (bits < kRsaBitsMin || bits > kRsaBitsMax) {
    return Error{Fault::invalid, "an RSA key must have 2048 to 8192 bits, not " + std::to_string(bits)};
  }
  if (exponent == nullptr || !BN_is_odd(exponent.get()) || BN_is_one(exponent.get())) {
    return Error{Fault::invalid, "e must be odd and above 1"};
  }
  const Builder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr || OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return Error{Fault::unavailable, "no memory for the key"};
  }
  if (Handle made = make_key("RSA", builder.get())) return made;
  return Error{Fault::invalid, "n and e are not an RSA key"};
}

Result<Handle> p256_key(JsonValue key) {
  const auto x = bytes_in(key, "x");
  const auto y = bytes_in(key, "y");
  if (!x || !y || x->size() != kCoordinateBytes || y->size() != kCoordinateBytes) {
    return Error{Fault::invalid, "x and y of P-256 must be 32 bytes each in base64url"};
  }
  const std::string point = '\4' + *x + *y;  // uncompressed
  const Builder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
    return Error{Fault::unavailable, "no memory for the key"};
  }
  if (Handle made = make_key("EC", builder.get())) return made;
  return Error{Fault::invalid, "x and y are not a point of P-256"};
}

Result<Handle> ed25519_key(JsonValue key) {
  const auto x = bytes_in(key, "x");
  if (!x || x->size() != kCoordinateBytes) {
    return Error{Fault::invalid, "x of Ed25519 must be 32 bytes in base64url"};
  }
  if (Handle made = own(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(*x), x->size()))) return made;
  return Error{Fault::invalid, "x is not an Ed25519 key"};
}

// Returns the algorithm of the key's type, or nullopt if it is not supported.
std::optional<JwtAlgorithm> algorithm_of(JsonValue key) {
  const std::string_view type = text_of(key, "kty");
  const std::string_view curve = text_of(key, "crv");
  if (type == "RSA") return JwtAlgorithm::rs256;
  if (type == "EC" && curve == "P-256") return JwtAlgorithm::es256;
  if (type == "OKP" && curve == "Ed25519") return JwtAlgorithm::eddsa;
  return std::nullopt;
}

// Returns whether its alg, use and key_ops, if given, allow verification (RFC 7517 §4).
bool is_for_verifying(JsonValue key, JwtAlgorithm algorithm) {
  if (key.find("alg") && text_of(key, "alg") != print(algorithm)) return false;
  if (key.find("use") && text_of(key, "use") != "sig") return false;
  const auto operations = key.find("key_ops");
  if (!operations) return true;
  if (!operations->is(JsonKind::array)) return false;
  for (const JsonValue operation : operations->items()) {
    if (operation.is(JsonKind::string) && operation.string() == "verify") return true;
  }
  return false;
}

Result<Handle> make_key(JsonValue key, JwtAlgorithm algorithm) {
  if (algorithm == JwtAlgorithm::rs256) return rsa_key(key);
  return algorithm == JwtAlgorithm::es256 ? p256_key(key) : ed25519_key(key);
}

// RFC 7518 §3.4: r and s, 32 bytes each. The library takes DER; a signature that arrives in DER is refused.
std::string der_of(std::string_view signature) {
  if (signature.size() != 2 * kCoordinateBytes) return {};
  const EcSignature both(ECDSA_SIG_new());
  Number r(BN_bin2bn(bytes_of(signature), kCoordinateBytes, nullptr));
  Number s(BN_bin2bn(bytes_of(signature.substr(kCoordinateBytes)), kCoordinateBytes, nullptr));
  if (both == nullptr || r == nullptr || s == nullptr) return {};
  if (ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return {};
  (void)r.release();  // owned by the signature
  (void)s.release();
  std::string der(static_cast<std::size_t>(std::max(i2d_ECDSA_SIG(both.get(), nullptr), 0)), '\0');
  auto* to = reinterpret_cast<unsigned char*>(der.data());
  (void)i2d_ECDSA_SIG(both.get(), &to);
  return der;
}

}  // namespace

std::string_view print(JwtAlgorithm algorithm) noexcept {
  constexpr std::array<std::string_view, 4> names{"RS256", "ES256", "EdDSA", "HS256"};
  return names[static_cast<std::size_t>(algorithm)];
}

bool decode_base64url(std::string_view text, std::string& bytes) {
  bytes.clear();
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    std::uint32_t value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<std::uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<std::uint32_t>(c - 'a' + 26);
    } else if (c >= '0' && c <= '9') {
      value = static_cast<std::uint32_t>(c - '0' + 52);
    } else if (c == '-' || c == '_') {
      value = c == '-' ? 62 : 63;
    } else {
      return false;
    }
    held = held << 6 | value;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits & 0xff);
    held &= (1u << bits) - 1;
  }
  // Six leftover bits mean an extra character; other leftover bits must be zero, so that each value has one spelling.
  return bits < 6 && held == 0;
}

Result<JwtKeys> JwtKeys::parse(std::string_view jwks) {
  JsonReader reader;
  const Result<JsonValue> document = reader.read(jwks);
  if (!document) return document.error();
  const auto all = document->is(JsonKind::object) ? document->find("keys") : std::nullopt;
  if (!all || !all->is(JsonKind::array)) return Error{Fault::invalid, "a JWK set is an object with an array \"keys\""};
  auto keys = std::make_shared<std::vector<Key>>();
  std::vector<std::string> kids;
  std::size_t number = 0;
  for (const JsonValue one : all->items()) {
    const std::string where = "keys[" + std::to_string(number++) + "]: ";
    if (number > bounds::jwt_keys_max) {
      return Error{Fault::too_large, "more than " + std::to_string(bounds::jwt_keys_max) + " keys"};
    }
    if (!one.is(JsonKind::object)) return Error{Fault::invalid, where + "a key must be an object"};
    if (text_of(one, "kty") == "oct") {
      return Error{Fault::invalid, where + "an oct key is a shared secret; use jwt.secret"};
    }
    std::string kid(text_of(one, "kid"));
    if (!kid.empty() && std::ranges::find(kids, kid) != kids.end()) {
      return Error{Fault::invalid, where + "kid " + quote(kid) + " occurs twice"};
    }
    if (!kid.empty()) kids.push_back(kid);
    const auto algorithm = algorithm_of(one);
    if (!algorithm || !is_for_verifying(one, *algorithm)) continue;
    Result<Handle> handle = make_key(one, *algorithm);
    if (!handle) return Error{handle.error().fault, where + handle.error().detail};
    keys->push_back({std::move(kid), *algorithm, std::move(*handle)});
  }
  if (keys->empty()) return Error{Fault::invalid, "no key to verify RS256, ES256 or EdDSA with"};
  JwtKeys made;
  made.keys_ = std::move(keys);
  return made;
}

bool JwtKeys::Key::verifies(std::string_view text, std::string_view signature) const {
  const bool is_ec = algorithm == JwtAlgorithm::es256;
  const std::string der = is_ec ? der_of(signature) : std::string();
  const std::string_view signed_as = is_ec ? std::string_view(der) : signature;
  if (signed_as.empty()) return false;
  const Verification context(EVP_MD_CTX_new());
  const EVP_MD* const digest = algorithm == JwtAlgorithm::eddsa ? nullptr : EVP_sha256();
  return context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, static_cast<EVP_PKEY*>(handle.get())) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signed_as), signed_as.size(), bytes_of(text), text.size()) == 1;
}

}  // namespace weir
