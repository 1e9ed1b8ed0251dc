// Caches denials for up to a second, so that a flood costs Redis one question per bucket, server and second instead of
// one per request.
//
// An entry is a question that a bucket denied: its buckets, numbers and costs, and what was decided. It lives
// min(retry_after, 1 s) from the sending of that question. Until retry_after is over the answer cannot become yes by
// waiting; what could make it yes on this server, a refund, a reset or other numbers, drops it; what does so on another
// server is noticed after at most a second. When the second is over, whoever asks first asks Redis; until that is
// answered, or kAskAgainMax, the others still hear what is known. Otherwise a flood would meet Redis every second with
// all that arrives within one round trip.
//
// Thread safety: every function may be called from any thread at any time: all loops of a server share one. Stripes by
// hash, each with its lock, held for some instructions.
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
    ask_again,  // it was denied a second ago: ask, and if that passes, drop() the bucket
    denied,
  };

  // What `bucket` said to that very question, if it is still true; then `denial` tells it.
  Found find(std::string_view bucket, std::string_view question, Time now, Denial& denial);
  // `retry_after` is the bucket's, `serial` was noted when the question was sent. One denial per bucket: the last
  // question's.
  void remember(std::string_view bucket, std::string_view question, std::span<const Decision> decisions,
                Duration retry_after, Time sent, Time now, std::uint64_t serial);
  // The bucket was refunded, reset or asked with other numbers: no denial of a question that was sent before is true.
  void forget(std::string_view bucket);
  void forget_all();
  // The bucket did not deny: nothing to remember.
  void drop(std::string_view bucket) noexcept;
  // What was forgotten so far, to be noted when a question is sent.
  std::uint64_t serial() const noexcept { return voided_.serial(); }
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::uint64_t question = 0;
    Time sent{};
    Time until{};         // of its life
    Time denies_until{};  // by itself
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
  std::atomic<std::size_t> size_{0};  // relaxed: a guess is enough to leave early
};

}  // namespace weir::redis
