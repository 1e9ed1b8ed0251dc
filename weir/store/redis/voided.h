// Buckets that were refunded or reset through this server. A denial of such a bucket that was in flight at the time may
// no longer be true. A ring of the latest ones: a reader who missed more than it holds must assume that any bucket was
// added.
//
// Thread-safe. Checking costs one load while nothing was added.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "weir/base/bounds.h"

namespace weir::redis {

class Voided {
 public:
  // How many buckets were added so far.
  std::uint64_t serial() const noexcept { return serial_.load(std::memory_order_acquire); }

  // `hash` is the bucket's hash, the same on every loop.
  void add(std::uint64_t hash) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t serial = serial_.load(std::memory_order_relaxed);
    hashes_[serial % kKept] = hash;
    serial_.store(serial + 1, std::memory_order_release);
  }
  // Adds every bucket.
  void add_all() {
    const std::lock_guard lock(mutex_);
    serial_.store(serial_.load(std::memory_order_relaxed) + kKept + 1, std::memory_order_release);
  }

  // Calls `visit` for each bucket added since serial() was `from`. Returns false if the ring no longer holds them all:
  // any bucket may have been added.
  template <class Visit>
  bool visit_since(std::uint64_t from, Visit visit) const {
    const std::lock_guard lock(mutex_);
    const std::uint64_t serial = serial_.load(std::memory_order_relaxed);
    if (serial - from > kKept) return false;
    for (std::uint64_t i = from; i < serial; ++i) visit(hashes_[i % kKept]);
    return true;
  }

 private:
  static constexpr std::size_t kKept = bounds::denials_voided_max;

  mutable std::mutex mutex_;
  std::atomic<std::uint64_t> serial_{0};
  std::array<std::uint64_t, kKept> hashes_{};
};

}  // namespace weir::redis
