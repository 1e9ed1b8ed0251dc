// Reusable objects, each identified by a small number while it is in use. Released objects keep their memory for the
// next user, because a question that allocates nothing costs a third less. trim() frees objects that were not needed
// recently, so that memory shrinks again after a burst.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/time.h"

namespace weir {

// How often to trim() a pool.
inline constexpr Duration kTrimEvery = std::chrono::milliseconds{100};

template <class T>
class Pool {
 public:
  static constexpr std::size_t kTrimMax = 1024;  // objects freed at once: an event loop must not pause for long

  // trim() keeps at least `spare_min` objects.
  explicit Pool(std::size_t spare_min) noexcept : spare_min_(spare_min) {}

  // Returns the number of an object: a new one, or a released one as its last user left it.
  std::size_t take() {
    if (free_.empty()) {
      free_.push_back(objects_.size());
      objects_.emplace_back();
    }
    std::unique_ptr<T> object;
    if (spares_.empty()) {
      object = std::make_unique<T>();
    } else {
      object = std::move(spares_.back());
      spares_.pop_back();
    }
    const std::size_t number = free_.back();
    free_.pop_back();
    objects_[number] = std::move(object);
    peak_ = std::max(peak_, in_use());
    return number;
  }

  // REQUIRES: the number is in use.
  T& operator[](std::size_t number) noexcept {
    WEIR_ASSERT(objects_[number] != nullptr);
    return *objects_[number];
  }
  const T& operator[](std::size_t number) const noexcept {
    WEIR_ASSERT(objects_[number] != nullptr);
    return *objects_[number];
  }

  // Keeps the object for the next take(), or frees it.
  void release(std::size_t number, bool keep = true) {
    WEIR_ASSERT(objects_[number] != nullptr);
    std::unique_ptr<T> object = std::move(objects_[number]);
    free_.push_back(number);
    if (keep) spares_.push_back(std::move(object));
  }

  std::size_t in_use() const noexcept { return objects_.size() - free_.size(); }
  std::size_t spare() const noexcept { return spares_.size(); }
  // Whether trim() may have something to free.
  bool has_excess() const noexcept { return spares_.size() > spare_min_; }

  // Shrinks the pool to the peak number in use since the last complete trim, freeing at most kTrimMax objects per call.
  // Returns true when the trim is complete; the peak then restarts at the current use.
  bool trim() {
    const std::size_t keep = std::max(peak_, spare_min_);
    std::size_t excess = in_use() + spares_.size() > keep ? in_use() + spares_.size() - keep : 0;
    excess = std::min(excess, spares_.size());
    spares_.resize(spares_.size() - std::min(excess, kTrimMax));
    if (excess > kTrimMax) return false;
    peak_ = in_use();
    return true;
  }

 private:
  std::size_t spare_min_;
  std::size_t peak_ = 0;                     // most objects in use at once since the last complete trim
  std::vector<std::unique_ptr<T>> objects_;  // by number; null: not in use
  std::vector<std::size_t> free_;            // numbers not in use
  std::vector<std::unique_ptr<T>> spares_;
};

}  // namespace weir
