// Denials remembered for a moment, so that a flood costs Redis one question per bucket and second and not one each.
//
// An entry is a question that a bucket denied: its buckets, numbers and costs, and what was decided. It lives
// min(retry_after, 1 s) from the sending of that question. Until retry_after is over the answer cannot become yes by
// waiting; what could make it yes on this server, a refund, a reset or other numbers, drops it; what does so on another
// server is noticed after at most a second.
//
// Thread safety: none; every loop has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/core/decision.h"

namespace weir::redis {

inline constexpr Duration kDenialLifeMax = std::chrono::seconds{1};

class DenialCache {
 public:
  // `key` is secret: without it nobody can choose names that meet.
  explicit DenialCache(HashKey key, std::size_t entries_max = bounds::denials_remembered_max) noexcept
      : key_(key), entries_max_(entries_max) {}

  struct Denial {
    std::span<const Decision> decisions;  // until the cache is changed
    Time sent;
  };

  // What `bucket` said to that very question, if it is still true.
  const Denial* find(std::string_view bucket, std::string_view question, Time now);
  // `retry_after` is the bucket's. One denial per bucket: the last question's.
  void remember(std::string_view bucket, std::string_view question, std::span<const Decision> decisions,
                Duration retry_after, Time sent, Time now);
  // The bucket was refunded, reset or asked with other numbers.
  void forget(std::string_view bucket) noexcept { forget(hash(bucket)); }
  void forget(std::uint64_t hash) noexcept { entries_.erase(hash); }
  void forget_all() noexcept { entries_.clear(); }
  std::uint64_t hash(std::string_view bucket) const noexcept { return siphash13(key_, bucket); }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::uint64_t question = 0;
    Time sent{};
    Time until{};
    std::uint64_t serial = 0;
    std::vector<Decision> decisions;
  };
  struct Age {
    Time born;
    std::uint64_t bucket;
    std::uint64_t serial;
  };

  void drop_old(Time now);

  HashKey key_;
  std::size_t entries_max_;
  std::unordered_map<std::uint64_t, Entry> entries_;  // by the bucket's hash
  std::deque<Age> ages_;                              // in the order remembered
  std::uint64_t next_serial_ = 0;
  Denial found_;
};

}  // namespace weir::redis
