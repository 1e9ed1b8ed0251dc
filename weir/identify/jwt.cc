#include "weir/identify/jwt.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "weir/base/assert.h"
#include "weir/wire/json.h"

namespace weir {
namespace {

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kSecondsMax = 1'000'000'000'000;  // later than any calendar date; prevents overflow of sums

struct Split {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view text;  // the signed part
};

std::optional<Split> split(std::string_view token) {
  const std::size_t first = token.find('.');
  if (first == token.npos) return std::nullopt;
  const std::size_t second = token.find('.', first + 1);
  if (second == token.npos || token.find('.', second + 1) != token.npos) return std::nullopt;
  return Split{token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1),
               token.substr(0, second)};
}

bool signed_with(std::string_view secret, std::string_view text, std::string_view signature) {
  std::array<unsigned char, 32> mac;
  unsigned size = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  return made != nullptr && size == mac.size() && signature.size() == mac.size() &&
         CRYPTO_memcmp(mac.data(), signature.data(), mac.size()) == 0;
}

std::optional<JwtAlgorithm> read_algorithm(std::string_view text) {
  for (const auto one : {JwtAlgorithm::rs256, JwtAlgorithm::es256, JwtAlgorithm::eddsa, JwtAlgorithm::hs256}) {
    if (text == print(one)) return one;
  }
  return std::nullopt;
}

// Parses a NumericDate (RFC 7519 §2) and drops its fraction; nullopt if it is not one.
std::optional<std::int64_t> read_date(JsonValue value) {
  if (!value.is(JsonKind::number)) return std::nullopt;
  const std::string_view text = value.number();
  std::int64_t seconds = 0;
  const bool negative = text.starts_with('-');
  for (const char c : text.substr(negative ? 1 : 0)) {
    if (c == '.') break;
    if (c < '0' || c > '9') return std::nullopt;
    seconds = std::min(seconds * 10 + (c - '0'), kSecondsMax);
  }
  if (text.find_first_of("eE") != text.npos) return std::nullopt;
  return negative ? -seconds : seconds;
}

// A claim with exactly that name takes precedence over one inside another.
std::string claim_of(JsonValue object, std::string_view name) {
  if (const auto found = object.find(name)) {
    if (found->is(JsonKind::string)) return std::string(found->string());
    const bool integer = found->is(JsonKind::number) && found->number().find_first_of(".eE") == std::string_view::npos;
    return integer ? std::string(found->number()) : std::string();
  }
  const std::size_t dot = name.find('.');
  if (dot == name.npos) return {};
  const auto outer = object.find(name.substr(0, dot));
  return outer && outer->is(JsonKind::object) ? claim_of(*outer, name.substr(dot + 1)) : std::string();
}

bool is_for(JsonValue payload, std::string_view audience) {
  const auto found = payload.find("aud");
  if (!found) return false;
  if (found->is(JsonKind::string)) return found->string() == audience;
  if (!found->is(JsonKind::array)) return false;
  for (const JsonValue one : found->items()) {
    if (one.is(JsonKind::string) && one.string() == audience) return true;
  }
  return false;
}

}  // namespace

struct JwtVerifier::Verified {
  std::optional<JwtReason> reason;
  std::int64_t expires = kNoTime;
  std::int64_t not_before = kNoTime;
  std::shared_ptr<const Claims> claims;
};

struct JwtVerifier::CachedToken {
  std::array<std::uint64_t, 2> token{};  // its hash with two keys; 0: empty
  Verified verified;
};

std::string_view print(JwtReason reason) noexcept {
  constexpr std::array<std::string_view, kJwtReasons> names{"malformed",     "too_large", "unsupported", "algorithm",
                                                            "unknown_key",   "signature", "missing_exp", "expired",
                                                            "not_yet_valid", "issuer",    "audience"};
  return names[static_cast<std::size_t>(reason)];
}

JwtVerifier::JwtVerifier(JwtRules rules, JwtKeys keys, std::vector<std::string> claims, HashKey hash_key,
                         std::shared_ptr<JwtCounts> counts)
    : rules_(std::move(rules)),
      keys_(std::move(keys)),
      claims_(std::move(claims)),
      hash_key_(hash_key),
      counts_(std::move(counts)),
      cache_(std::make_unique<CachedToken[]>(bounds::jwt_remembered_max)) {}

JwtVerifier::~JwtVerifier() = default;

std::size_t JwtVerifier::index_of(std::string_view claim) const noexcept {
  const auto found = std::ranges::find(claims_, claim);
  WEIR_ASSERT(found != claims_.end());
  return static_cast<std::size_t>(found - claims_.begin());
}

JwtVerifier::Outcome JwtVerifier::check(std::string_view token, Wall now) const {
  Outcome outcome = find_or_verify(token, now);
  if (outcome.claims == nullptr && counts_ != nullptr) counts_->add(outcome.reason);
  return outcome;
}

JwtVerifier::Outcome JwtVerifier::find_or_verify(std::string_view token, Wall now) const {
  if (token.size() > bounds::jwt_bytes_max) return {nullptr, JwtReason::too_large};
  const std::array<std::uint64_t, 2> hash{siphash13(hash_key_, token),
                                          siphash13({~hash_key_.k0, hash_key_.k1}, token) | 1};
  const std::size_t index = hash[0] % bounds::jwt_remembered_max;
  std::mutex& mutex = mutexes_[index % kStripes];
  {
    const std::lock_guard lock(mutex);
    if (cache_[index].token == hash) return check_times(cache_[index].verified, now);
  }
  Verified verified = verify(token);
  const Outcome outcome = check_times(verified, now);
  const std::lock_guard lock(mutex);
  cache_[index] = {hash, std::move(verified)};
  return outcome;
}

// RFC 7519 §4.1.4 and §4.1.5.
JwtVerifier::Outcome JwtVerifier::check_times(const Verified& verified, Wall now) const {
  if (verified.reason) return {nullptr, *verified.reason};
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const std::int64_t leeway = std::chrono::ceil<std::chrono::seconds>(rules_.leeway).count();
  if (verified.expires != kNoTime && seconds >= verified.expires + leeway) return {nullptr, JwtReason::expired};
  if (verified.not_before != kNoTime && seconds < verified.not_before - leeway) {
    return {nullptr, JwtReason::not_yet_valid};
  }
  return {verified.claims, {}};
}

JwtVerifier::Verified JwtVerifier::verify(std::string_view token) const {
  Verified verified;
  const auto parts = split(token);
  std::string header;
  std::string payload;
  std::string signature;
  if (!parts || !decode_base64url(parts->header, header) || !decode_base64url(parts->payload, payload) ||
      !decode_base64url(parts->signature, signature)) {
    verified.reason = JwtReason::malformed;
    return verified;
  }
  verified.reason = check_signature(header, parts->text, signature);
  if (!verified.reason) read_claims(payload, verified);
  return verified;
}

std::optional<JwtReason> JwtVerifier::check_signature(std::string_view header, std::string_view text,
                                                      std::string_view signature) const {
  JsonReader reader;
  const Result<JsonValue> read = reader.read(header);
  if (!read || !read->is(JsonKind::object)) return JwtReason::malformed;
  // We support no critical headers, and b64 changes what is signed (RFC 7515 §4.1.11, RFC 7797).
  if (read->find("crit") || read->find("b64")) return JwtReason::unsupported;
  const auto alg = read->find("alg");
  if (!alg || !alg->is(JsonKind::string)) return JwtReason::malformed;
  const auto algorithm = read_algorithm(alg->string());
  if (!algorithm) return JwtReason::unsupported;
  if (std::ranges::find(rules_.algorithms, *algorithm) == rules_.algorithms.end()) return JwtReason::algorithm;
  std::optional<std::string_view> kid;
  if (const auto found = read->find("kid")) {
    if (!found->is(JsonKind::string)) return JwtReason::malformed;
    kid = found->string();
  }
  return check_key(*algorithm, kid, text, signature);
}

// Never uses the secret for another algorithm, nor a public key for HS256.
std::optional<JwtReason> JwtVerifier::check_key(JwtAlgorithm algorithm, std::optional<std::string_view> kid,
                                                std::string_view text, std::string_view signature) const {
  if (algorithm == JwtAlgorithm::hs256) {
    if (rules_.secret.empty()) return JwtReason::algorithm;
    if (!signed_with(rules_.secret, text, signature)) return JwtReason::signature;
    return std::nullopt;
  }
  std::size_t tried = 0;
  for (const JwtKeys::Key& key : keys_.keys()) {
    if (kid && key.kid != *kid) continue;
    if (kid && key.algorithm != algorithm) return JwtReason::algorithm;
    if (key.algorithm != algorithm) continue;
    if (tried++ == bounds::jwt_keys_tried_max) break;
    if (key.verifies(text, signature)) return std::nullopt;
  }
  return tried == 0 ? JwtReason::unknown_key : JwtReason::signature;
}

void JwtVerifier::read_claims(std::string_view payload, Verified& verified) const {
  verified.reason = JwtReason::malformed;
  JsonReader reader;
  const Result<JsonValue> read = reader.read(payload);
  if (!read || !read->is(JsonKind::object)) return;
  for (const auto& [name, to] : {std::pair{"exp", &verified.expires}, {"nbf", &verified.not_before}}) {
    const auto found = read->find(name);
    if (!found) continue;
    const auto date = read_date(*found);
    if (!date) return;
    *to = *date;
  }
  verified.reason = JwtReason::missing_exp;
  if (rules_.require_exp && verified.expires == kNoTime) return;
  verified.reason = JwtReason::issuer;
  const auto issuer = read->find("iss");
  const bool issued = issuer && issuer->is(JsonKind::string) && issuer->string() == rules_.issuer;
  if (!rules_.issuer.empty() && !issued) return;
  verified.reason = JwtReason::audience;
  if (!rules_.audience.empty() && !is_for(*read, rules_.audience)) return;
  verified.reason.reset();
  auto claims = std::make_shared<Claims>();
  for (const std::string& name : claims_) claims->push_back(claim_of(*read, name));
  verified.claims = std::move(claims);
}

}  // namespace weir
