// Caches denials for up to a second, so that a flood costs Redis one question per bucket, server and second instead of
// one per request.
//
// An entry is a question that a bucket denied: its buckets, numbers, costs and decisions. It lives min(retry_after, 1
// s), counted from when the question was sent. Waiting cannot change the answer before retry_after. What can change it
// on this server (a refund, a reset, other numbers, a charge for another question) drops the entry; changes on other
// servers are noticed after at most a second. After that second, the first request asks Redis; until Redis answers, but
// at most for kAskAgainMax, the others still get the cached denial. Without this, every second Redis would get all
// requests that arrive within one round trip.
//
// Thread safety: every function may be called from any thread at any time; all loops of a server share one cache. It is
// striped by hash; each stripe has a lock that is held for a few instructions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/core/decision.h"
#include "weir/store/redis/voided.h"

namespace weir::redis {

inline constexpr Duration kDenialLifeMax = std::chrono::seconds{1};
inline constexpr Duration kAskAgainMax = std::chrono::milliseconds{100};

class DenialCache {
 public:
  // `key` is secret: it keeps clients from choosing names whose hashes collide.
  explicit DenialCache(HashKey key, std::size_t entries_max = bounds::denials_remembered_max);

  struct Denial {
    std::vector<Decision> decisions;
    Time sent;
  };
  enum class Found : unsigned char {
    nothing,
    ask_again,  // denied a second ago: ask Redis, and drop() the bucket if it allows
    denied,
  };

  // Looks up what `bucket` answered to exactly this question. Fills `denial` if the result is `denied`.
  Found find(std::string_view bucket, std::string_view question, Time now, Denial& denial);
  // Caches a denial. `retry_after` is the bucket's; `serial` is serial() when the question was sent. Keeps one denial
  // per bucket, the latest.
  void remember(std::string_view bucket, std::string_view question, std::span<const Decision> decisions,
                Duration retry_after, Time sent, Time now, std::uint64_t serial);
  // Call when the bucket was refunded, reset or asked with other numbers. Voids all denials of questions sent before.
  void forget(std::string_view bucket);
  void forget_all();
  // Call when the bucket did not deny. Removes its entry, except a denial of exactly the question `but`.
  void drop(std::string_view bucket, std::string_view but = {}) noexcept;
  // Counts the forgotten buckets. Note it when a question is sent, for remember().
  std::uint64_t serial() const noexcept { return voided_.serial(); }
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::uint64_t question = 0;
    Time sent{};
    Time until{};         // end of its life
    Time denies_until{};  // waiting cannot change the answer before this
    bool asked_again = false;
    std::uint64_t serial = 0;
    std::vector<Decision> decisions;
  };
  struct Age {
    Time born;
    std::uint64_t bucket;
    std::uint64_t serial;
  };
  struct alignas(64) Stripe {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, Entry> entries;  // by the bucket's hash
    std::deque<Age> ages;                              // in the order remembered
    std::uint64_t next_serial = 0;
  };

  Stripe& stripe_of(std::uint64_t bucket) noexcept { return stripes_[bucket % stripes_.size()]; }
  bool is_void(std::uint64_t bucket, std::uint64_t since) const;
  void drop_old(Stripe& stripe, Time now);

  HashKey key_;
  std::vector<Stripe> stripes_;
  std::size_t stripe_entries_max_;
  Voided voided_;
  std::atomic<std::size_t> size_{0};  // relaxed: an estimate is enough for the early return
};

}  // namespace weir::redis
