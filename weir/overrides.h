// Maps a key's hash to the limit that overrides the limiter's own. Every spend reads it; writes are rare.
//
// Holds two copies of one small hash table. Readers use the copy that the version selects. A writer changes the other
// copy, advances the version, and then changes the first copy too.
//
// Invariants
// 1. A writer writes only the copy that the version does not select. So a reader that sees the same version before and
//    after reading has read a consistent copy; otherwise it reads again. A stalled writer blocks no reader.
// 2. Arrays that were outgrown are not freed, because a reader may still be using one. Together they are smaller than
//    the array in use.
//
// Thread safety: every function may be called from any thread at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/limit.h"

namespace weir {

class Overrides {
 public:
  Overrides() = default;
  ~Overrides();
  Overrides(const Overrides&) = delete;
  Overrides& operator=(const Overrides&) = delete;

  // Acquire: a reader that sees a nonzero size also sees the copies.
  std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  std::optional<Limit> find(std::uint64_t h) const noexcept { return size() == 0 ? std::nullopt : search(h); }

  // When an override was last set or removed. A thread that has seen the effect of a change sees the time of that
  // change here, or a later one. Acquire: see set().
  Time changed() const noexcept { return changed_.load(std::memory_order_acquire); }

  // REQUIRES: h != 0. Fails beyond bounds::overrides_max or if memory runs out; then nothing has changed.
  Result<void> set(std::uint64_t h, const Limit& limit, Time now) noexcept;
  // Returns false if there was none.
  bool remove(std::uint64_t h, Time now) noexcept;

 private:
  class Copy;

  std::optional<Limit> search(std::uint64_t h) const noexcept;
  bool reserve(std::size_t count) noexcept;
  template <class Change>
  void change_both(Change change) noexcept;

  std::mutex writing_;
  std::atomic<std::size_t> size_{0};
  std::atomic<Time> changed_{};
  std::atomic<std::uint64_t> version_{0};
  std::array<std::atomic<Copy*>, 2> copies_{};  // null until the first override
};

}  // namespace weir
