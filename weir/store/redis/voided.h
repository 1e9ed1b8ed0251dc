// Buckets that were refunded or reset through this server: a denial of such a bucket that was on its way meanwhile need
// not be true any more. A ring of the last ones; who has missed too many takes it that his was among them.
//
// Thread safety: all of it. Looking costs one load while there is nothing new.
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
  // How many there were so far.
  std::uint64_t serial() const noexcept { return serial_.load(std::memory_order_acquire); }

  // `hash` is the bucket's, as every loop computes it.
  void add(std::uint64_t hash) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t serial = serial_.load(std::memory_order_relaxed);
    hashes_[serial % kKept] = hash;
    serial_.store(serial + 1, std::memory_order_release);
  }
  // Every bucket.
  void add_all() {
    const std::lock_guard lock(mutex_);
    serial_.store(serial_.load(std::memory_order_relaxed) + kKept + 1, std::memory_order_release);
  }

  // Each bucket that was added since serial() was `from`. False: they are not known any more, it may have been any.
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
