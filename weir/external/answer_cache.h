// The answers of limits services in this process: bounded, and striped so that loops rarely meet.
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

// An answer and until when it counts.
struct KeptAnswer : ServiceAnswer {
  std::string service;  // LimitsService::digest
  Time answered{};      // when the service gave it
  Time fresh_until{};   // at most answered + bounds::service_ttl_max
  Time stale_until{};   // not before fresh_until; until then it may be used while the service fails
  bool shared = false;  // read from the cache that servers share
};

class AnswerCache {
 public:
  struct Found {
    std::shared_ptr<const KeptAnswer> answer;  // null: none
    bool fresh = false;
  };

  // Keeps at most `answers_max`, at least 1; of a full stripe the least recently put is removed. `key` is secret: it
  // keeps clients from choosing keys whose hashes collide.
  explicit AnswerCache(HashKey key, std::size_t answers_max);

  // An answer of another service, or one past its stale_until, is none.
  Found find(std::string_view limit, std::string_view key, std::string_view service, Time now) const;
  // Replaces what is kept. If it replaces an answer of the same service with equal numbers, `since` stays; otherwise it
  // becomes `now`. Returns what is kept now. An answer whose stale_until is not after `now` is returned, not kept, and
  // what was kept before stays.
  std::shared_ptr<const KeptAnswer> put(std::string_view limit, std::string_view key, KeptAnswer answer, Time now);
  // Returns whether there was one.
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

    // by_age.end(): none.
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
