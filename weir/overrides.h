// Limits of single keys, by the key's hash: read by every spend, written now and then.
//
// Two copies of one small hash table. Readers use the copy that the version names; a writer changes the other, moves
// the version on, and then changes the first one too.
//
// Invariants
// 1. Only the copy that the version does not name is written. So a reader that finds the same version after it has read
//    has read a whole copy; another one reads again. A writer that stalls holds nobody up.
// 2. An array that was outgrown stays, because a reader may still look at it: together they are smaller than the one in
//    use.
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

  // Acquire: with the size come the copies.
  std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  std::optional<Limit> find(std::uint64_t h) const noexcept { return size() == 0 ? std::nullopt : search(h); }

  // When an override was last set or removed, at least for whoever finds the result of it. Acquire: see set().
  Time changed() const noexcept { return changed_.load(std::memory_order_acquire); }

  // REQUIRES: h != 0. Fails beyond bounds::overrides_max, or for want of memory; then nothing has changed.
  Result<void> set(std::uint64_t h, const Limit& limit, Time now) noexcept;
  // False if there was none.
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
