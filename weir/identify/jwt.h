// Verifies JSON Web Tokens (RFC 7519) in compact, signed form (RFC 7515). In: the client's token. Out: the claims that
// limits use as keys, if a known key signed the token and it is valid now; otherwise the reason.
//
// Caches outcomes, good and bad, under a keyed hash of the token, so that a repeated token costs no signature check.
// Time-dependent rules are checked each time. The cache is a table of fixed size: a new token replaces an old one.
//
// Thread-safe. Cache entries have striped locks, held for a few instructions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/identify/jwt_keys.h"

namespace weir {

// Why a token is rejected.
enum class JwtReason : unsigned char {
  malformed,    // not three base64url parts, not JSON, a repeated member, a claim of the wrong type
  too_large,    // more than bounds::jwt_bytes_max
  unsupported,  // alg none or unknown, crit, b64
  algorithm,    // not enabled, or not the algorithm of the named key
  unknown_key,  // no key has its kid, or none has its type
  signature,
  missing_exp,
  expired,
  not_yet_valid,
  issuer,
  audience,
};
inline constexpr std::size_t kJwtReasons = 11;

// Returns the metric label: "not_yet_valid".
std::string_view print(JwtReason reason) noexcept;

// Rejected tokens by reason, and key files that could not be used, for all loops and across reloads. Thread-safe;
// relaxed, because nothing is published through the counters.
class JwtCounts {
 public:
  void add(JwtReason reason) noexcept {
    counts_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t of(JwtReason reason) const noexcept {
    return counts_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }
  void add_key_failure() noexcept { key_failures_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t key_failures() const noexcept { return key_failures_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kJwtReasons> counts_{};
  std::atomic<std::uint64_t> key_failures_{0};
};

struct JwtRules {
  std::string secret{};    // of HS256; empty: disabled
  std::string issuer{};    // required `iss`; empty: any
  std::string audience{};  // required in `aud`; empty: any
  Duration leeway = std::chrono::seconds{30};
  std::vector<JwtAlgorithm> algorithms{JwtAlgorithm::rs256, JwtAlgorithm::es256, JwtAlgorithm::eddsa,
                                       JwtAlgorithm::hs256};
  bool require_exp = true;

  friend bool operator==(const JwtRules&, const JwtRules&) = default;
};

class JwtVerifier {
 public:
  // `claims` are the claims to read: "sub", or "a.b" for the claim "a.b" or, if there is none, member b of claim a.
  // `hash_key` is secret. `counts` may be null.
  JwtVerifier(JwtRules rules, JwtKeys keys, std::vector<std::string> claims, HashKey hash_key,
              std::shared_ptr<JwtCounts> counts = {});
  ~JwtVerifier();
  JwtVerifier(const JwtVerifier&) = delete;
  JwtVerifier& operator=(const JwtVerifier&) = delete;

  // One value per claim, empty if it is missing: a string, or an integer as written. Other types count as missing.
  using Claims = std::vector<std::string>;
  struct Outcome {
    std::shared_ptr<const Claims> claims;  // null: rejected
    JwtReason reason{};                    // why it was rejected
  };
  // Verifies the token at `now`; counts a rejection.
  Outcome check(std::string_view token, Wall now) const;

  // Returns the index of a claim. REQUIRES: it is one of `claims`.
  std::size_t index_of(std::string_view claim) const noexcept;

 private:
  struct Verified;  // what does not depend on the time
  struct CachedToken;
  static constexpr std::size_t kStripes = 64;

  Outcome find_or_verify(std::string_view token, Wall now) const;
  Verified verify(std::string_view token) const;
  std::optional<JwtReason> check_signature(std::string_view header, std::string_view text,
                                           std::string_view signature) const;
  std::optional<JwtReason> check_key(JwtAlgorithm algorithm, std::optional<std::string_view> kid, std::string_view text,
                                     std::string_view signature) const;
  void read_claims(std::string_view payload, Verified& verified) const;
  Outcome check_times(const Verified& verified, Wall now) const;

  JwtRules rules_;
  JwtKeys keys_;
  std::vector<std::string> claims_;
  HashKey hash_key_;
  std::shared_ptr<JwtCounts> counts_;
  mutable std::array<std::mutex, kStripes> mutexes_;
  std::unique_ptr<CachedToken[]> cache_;
};

}  // namespace weir
