// Caches the answers of limits services for all loops of the process. Bounded, and split into stripes so that loops
// rarely contend.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/policy/limits_service.h"

namespace weir::external {

// A cached answer and how long it may be used.
struct KeptAnswer : ServiceAnswer {
  std::string service;  // LimitsService::digest
  Time answered{};      // when the service gave it
  Time fresh_until{};   // at most answered + bounds::service_ttl_max
  Time stale_until{};   // at least fresh_until; usable until then while the service fails
  bool shared = false;  // read from the cache that servers share
};

class AnswerCache {
 public:
  struct Found {
    std::shared_ptr<const KeptAnswer> answer;  // null: none
    bool fresh = false;
  };

  // Keeps at most `answers_max` answers, at least 1. A full stripe evicts its least recently put answer. `key` must be
  // secret, so that clients cannot choose keys whose hashes collide.
  explicit AnswerCache(HashKey key, std::size_t answers_max);

  // Returns nothing if the cached answer is past its stale_until or came from another service.
  Found find(std::string_view limit, std::string_view key, std::string_view service, Time now) const;
  // Replaces the cached answer and returns the new one. Keeps `since` if the old answer has the same service and equal
  // numbers; otherwise sets it to `now`. Returns but does not cache an answer that has expired; the old one then stays.
  std::shared_ptr<const KeptAnswer> put(std::string_view limit, std::string_view key, KeptAnswer answer, Time now);
  // Returns true if there was an answer.
  bool forget(std::string_view limit, std::string_view key);
  // Drops everything.
  void clear();
  std::size_t size() const;

 private:
  struct Kept {
    std::uint64_t hash;
    std::string limit;
    std::string key;
    std::shared_ptr<const KeptAnswer> answer;
  };
  using Place = std::list<Kept>::iterator;
  struct alignas(64) Stripe {
    std::mutex mutex;
    std::list<Kept> by_age;  // the most recently put first
    std::unordered_map<std::uint64_t, Place> by_hash;

    // Returns by_age.end() if there is none.
    Place find(std::uint64_t hash, std::string_view limit, std::string_view key);
    void remove(Place place);
  };

  std::uint64_t hash_of(std::string_view limit, std::string_view key) const noexcept;
  Stripe& stripe_of(std::uint64_t hash) const noexcept { return stripes_[hash % stripes_count_]; }

  HashKey key_;
  std::size_t stripes_count_;
  std::size_t per_stripe_max_;
  std::unique_ptr<Stripe[]> stripes_;
};

}  // namespace weir::external
