// One stream of numbers for all viewers of the dashboard (GET /ratelimit/live): one sample a second for any number of
// viewers, and none without viewers. The viewers' own streams take the samples: each asks once a second; the one that
// gets the turn scans and publishes to all.
//
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/observe/events.h"

namespace weir::admin {

class LiveNumbers {
 public:
  // How often a sample is taken; how much earlier it may be, because viewers ask about once a second; and how long a
  // viewer may take for it before another one gets the turn.
  static constexpr Duration kEvery = std::chrono::seconds{1};
  static constexpr Duration kEarly = std::chrono::milliseconds{100};
  static constexpr Duration kTurn = std::chrono::seconds{3};

  // Lasts as long as the queue is held. Fails with `overloaded` at bounds::event_subscribers_max viewers.
  Result<std::shared_ptr<EventQueue>> subscribe();

  // True for one caller per sample: that one takes it and calls publish(). Early turns do not add up: n seconds have at
  // most n + 2 samples.
  bool take_turn(Time now);
  void publish(const std::string& sample);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<EventQueue>> viewers_;
  Time due_{};        // the next sample
  Time turn_ends_{};  // of the one who takes a sample
};

}  // namespace weir::admin
