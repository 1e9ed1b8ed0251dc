// A counter and a histogram that one thread writes and any thread reads.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weir/base/time.h"

namespace weir {

// One writer, many readers, so a plain add without a lock prefix is enough.
class Counter {
 public:
  void add(std::uint64_t by = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  void subtract(std::uint64_t by = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) - by, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// Counts durations in powers of two from 1 µs to about 8 s; the last bucket holds everything longer.
class Histogram {
 public:
  static constexpr std::size_t kBuckets = 24;

  void add(Duration duration) noexcept;
  // How many were at most upper_bound(i) and more than upper_bound(i - 1).
  std::uint64_t count(std::size_t i) const noexcept { return counts_[i].value(); }
  std::uint64_t sum_ns() const noexcept { return sum_ns_.value(); }
  static Duration upper_bound(std::size_t i) noexcept { return std::chrono::microseconds{std::int64_t{1} << i}; }

 private:
  std::array<Counter, kBuckets> counts_;
  Counter sum_ns_;
};

}  // namespace weir
