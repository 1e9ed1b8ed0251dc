// Publishes an immutable value, such as the policy, to many readers. Writers replace it as a whole. A reader that calls
// refresh() after publish() returned sees the new value, on any thread. Checking for a new value costs one load, and
// readers never wait while a writer builds the next value.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/time.h"

namespace weir {

// Thread-safe.
template <class T>
class Published {
 public:
  // `first` must not be null. `since` is stored with the value, for readers that need its publication time.
  explicit Published(std::shared_ptr<const T> first, Time since = Time{}) : value_(std::move(first)), since_(since) {
    WEIR_ASSERT(value_ != nullptr);
  }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  void publish(std::shared_ptr<const T> next, Time since = Time{}) {
    WEIR_ASSERT(next != nullptr);
    std::shared_ptr<const T> last;  // destroyed outside the lock, because that may take long
    {
      const std::lock_guard lock(mutex_);
      last = std::exchange(value_, std::move(next));
      since_ = since;
      version_.fetch_add(1, std::memory_order_release);
    }
  }

  std::shared_ptr<const T> current() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  Time since() const {
    const std::lock_guard lock(mutex_);
    return since_;
  }

  // Starts at 0 and increases by one with every publish().
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  template <class U>
  friend class Reader;

  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
  Time since_;
  std::atomic<std::uint64_t> version_{0};
};

// One thread's view of a Published. The value of get() stays valid and the same until the next refresh().
template <class T>
class Reader {
 public:
  // `source` must outlive the reader.
  explicit Reader(const Published<T>& source) : source_(source) { take(); }

  // Takes the current value. Returns true if it has changed.
  bool refresh() {
    if (source_.version() == version_) return false;
    take();
    return true;
  }
  const std::shared_ptr<const T>& get() const noexcept { return value_; }
  Time since() const noexcept { return since_; }

 private:
  void take() {
    const std::lock_guard lock(source_.mutex_);
    value_ = source_.value_;
    since_ = source_.since_;
    version_ = source_.version_.load(std::memory_order_relaxed);
  }

  const Published<T>& source_;
  std::shared_ptr<const T> value_;
  Time since_;
  std::uint64_t version_ = 0;
};

}  // namespace weir
