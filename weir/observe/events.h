// A live feed of decisions: each subscriber has a filter and a bounded queue. Without subscribers, which is the usual
// case, a decision costs one load.
//
// Thread-safe: loops publish, each subscriber takes from its own queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/core/answer.h"

namespace weir {

struct EventFilter {
  std::string limit;            // empty: all
  std::optional<bool> allowed;  // absent: both
  std::uint32_t sample = 1;     // one in this many
};

// One subscriber's events, each a line of JSON, oldest first. Drops and counts events that do not fit.
class EventQueue {
 public:
  explicit EventQueue(EventFilter filter) : filter_(std::move(filter)) {}

  // Applies the filter. Counts matches for `sample`, so call it once per decision.
  bool wants(std::string_view limit, bool allowed) noexcept;
  void push(const std::string& event);

  // Returns waiting events, up to about `bytes_max`, and how many were dropped since the last call.
  struct Taken {
    std::vector<std::string> events;
    std::uint64_t dropped = 0;
  };
  Taken take(std::size_t bytes_max);
  // Calls `wake` once: now if there is something to take, otherwise when something is added, on the thread that adds
  // it.
  void wake_once(std::function<void()> wake);

 private:
  const EventFilter filter_;
  std::atomic<std::uint64_t> matched_{0};
  std::mutex mutex_;
  std::deque<std::string> events_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::function<void()> wake_;
};

class Events {
 public:
  // The subscription lasts as long as the queue is held. Fails if there are already bounds::event_subscribers_max.
  Result<std::shared_ptr<EventQueue>> subscribe(EventFilter filter);

  // True if there is a subscriber.
  bool wanted() const noexcept { return subscribers_.load(std::memory_order_relaxed) != 0; }
  void publish(const Answer& answer);

 private:
  std::vector<std::shared_ptr<EventQueue>> live();

  std::atomic<std::size_t> subscribers_{0};
  std::mutex mutex_;
  std::vector<std::weak_ptr<EventQueue>> queues_;
};

}  // namespace weir
