// The source of Time. Only the outermost caller holds a Clock; everything below takes the reading as an argument.
#pragma once

#include <atomic>

#include "weir/base/time.h"

namespace weir {

// Thread-safe: any thread may read any Clock.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now now() const noexcept = 0;
  virtual Time time() const noexcept { return now().time; }  // cheaper if the wall clock is not needed
};

// The real clock: CLOCK_BOOTTIME (never steps, includes suspend) plus an offset, and CLOCK_REALTIME for the wall clock.
class BootClock final : public Clock {
 public:
  explicit BootClock(Duration offset = Duration::zero()) noexcept : offset_(offset) {}
  Now now() const noexcept override { return {time(), wall()}; }
  Time time() const noexcept override;
  static Wall wall() noexcept;

 private:
  Duration offset_;
};

// Advances only through advance() and set(): for tests and replays. Thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time time = Time{}, Wall wall = Wall{}) noexcept : time_(time), wall_(wall) {}
  Now now() const noexcept override { return {time_.load(), wall_.load()}; }
  void advance(Duration by) noexcept {
    time_.store(time_.load() + by);
    wall_.store(wall_.load() + by);
  }
  void set(Time time, Wall wall) noexcept {
    time_.store(time);
    wall_.store(wall);
  }

 private:
  std::atomic<Time> time_;
  std::atomic<Wall> wall_;
};

}  // namespace weir
