// Who asks, by a JSON Web Token (RFC 7519) in a compact, signed form (RFC 7515). In: a token as the client sent it.
// Out: the claims that limits are keyed by, if a key we know signed it and it holds now; otherwise the reason.
//
// Outcomes are remembered, good and bad, under a keyed hash of the token, so that repeating one costs no signature.
// What depends on the time is asked anew each time. The memory is a fixed table: a new token takes the place of an old
// one.
//
// Thread safety: all of it. Slots have striped locks, held for some instructions.
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

// Why a token says nothing about who asks.
enum class JwtReason : unsigned char {
  malformed,    // not three parts of base64url, no JSON, a member twice, a claim of the wrong type
  too_large,    // more than bounds::jwt_bytes_max
  unsupported,  // alg none or unknown, crit, b64
  algorithm,    // one that is off, or not that of the key it names
  unknown_key,  // no key has its kid, or there is none of its kind
  signature,
  missing_exp,
  expired,
  not_yet_valid,
  issuer,
  audience,
};
inline constexpr std::size_t kJwtReasons = 11;

// As labels of metrics have it: "not_yet_valid".
std::string_view print(JwtReason reason) noexcept;

// Tokens rejected, by reason, and key files that could not be used, for all loops and over reloads. Any thread may
// count and read; relaxed, because nothing is published through it.
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
  std::string secret{};    // of HS256; empty: that is off
  std::string issuer{};    // what `iss` must be; empty: anything
  std::string audience{};  // what `aud` must be or hold; empty: anything
  Duration leeway = std::chrono::seconds{30};
  std::vector<JwtAlgorithm> algorithms{JwtAlgorithm::rs256, JwtAlgorithm::es256, JwtAlgorithm::eddsa,
                                       JwtAlgorithm::hs256};
  bool require_exp = true;

  friend bool operator==(const JwtRules&, const JwtRules&) = default;
};

class JwtVerifier {
 public:
  // `claims` are those to be read: "sub", or "a.b" for a claim named so, otherwise b inside a. `hash_key` is secret.
  // Without counts nobody is told of rejected tokens.
  JwtVerifier(JwtRules rules, JwtKeys keys, std::vector<std::string> claims, HashKey hash_key,
              std::shared_ptr<JwtCounts> counts = {});
  ~JwtVerifier();
  JwtVerifier(const JwtVerifier&) = delete;
  JwtVerifier& operator=(const JwtVerifier&) = delete;

  // One value for each of the claims, empty where the token has none: a string, or an integer as it is written. Other
  // types count as missing.
  using Claims = std::vector<std::string>;
  struct Outcome {
    std::shared_ptr<const Claims> claims;  // null: rejected
    JwtReason reason{};                    // why
  };
  Outcome check(std::string_view token, Wall now) const;

  // The place of a claim among those to be read. REQUIRES: it is one of them.
  std::size_t index_of(std::string_view claim) const noexcept;

 private:
  struct Verified;  // all that does not depend on the time
  struct Slot;
  static constexpr std::size_t kStripes = 64;

  Outcome find_or_verify(std::string_view token, Wall now) const;
  Verified verify(std::string_view token) const;
  std::optional<JwtReason> check_signature(std::string_view header, std::string_view text,
                                           std::string_view signature) const;
  std::optional<JwtReason> check_key(JwtAlgorithm algorithm, std::optional<std::string_view> kid, std::string_view text,
                                     std::string_view signature) const;
  void read_claims(std::string_view payload, Verified& verified) const;
  Outcome judge(const Verified& verified, Wall now) const;

  JwtRules rules_;
  JwtKeys keys_;
  std::vector<std::string> claims_;
  HashKey hash_key_;
  std::shared_ptr<JwtCounts> counts_;
  mutable std::array<std::mutex, kStripes> mutexes_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace weir
