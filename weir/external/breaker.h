// Circuit breakers that stop calls to a failing limits service: one per failing key, and one for the whole service.
//
// Thread safety: none; their owner holds a lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "weir/base/time.h"

namespace weir::external {

enum class CallEnd : unsigned char {
  succeeded,
  failed,
  not_made,  // permitted but never started: does not count, and another probe may be made
};

// The breaker of a key opens for bounds::breaker_open_time after bounds::breaker_failures_max failed calls in a row.
// Then it permits exactly one call as a probe: success closes the breaker, failure opens it again. Only keys that
// failed have a breaker. Breakers unused for bounds::breaker_idle_time are removed; beyond bounds::breakers_max, the
// least recently used goes first.
class KeyBreakers {
 public:
  // Returns true if a call for this key may be made now. Then call ended() exactly once.
  bool permits(std::string_view key, Time now);
  void ended(std::string_view key, CallEnd end, Time now);

  // Removes idle breakers. permits() and ended() also remove a few at a time.
  void remove_idle(Time now);
  std::size_t open(Time now) const noexcept;  // open, or probing
  std::size_t size() const noexcept { return breakers_.size(); }

 private:
  struct Breaker {
    std::string key;
    int failures = 0;
    bool probing = false;
    Time open_until{};
    Time used{};
  };
  using Place = std::list<Breaker>::iterator;

  void remove_idle(Time now, int at_most);
  void use(Place breaker, Time now);
  void remove(Place breaker);

  std::list<Breaker> by_use_;  // the most recently used first
  // Ordered, not hashed: clients choose the keys, and could make them collide.
  std::map<std::string_view, Place> breakers_;
};

// Opens when at least bounds::service_breaker_calls_min calls ended within bounds::service_breaker_window and half of
// them failed. While open, it permits one probe per bounds::service_probe_every. The first success closes it and
// restarts the count.
class ServiceBreaker {
 public:
  bool permits(Time now);
  void ended(CallEnd end, Time now);
  bool is_open() const noexcept { return open_; }

 private:
  static constexpr std::size_t kSpans = 10;
  struct Span {
    std::int64_t number = -1;  // of the tenth of the window that it counts
    std::uint32_t ended = 0;
    std::uint32_t failed = 0;
  };
  std::array<Span, kSpans> spans_{};
  bool open_ = false;
  Time probe_at_{};
};

}  // namespace weir::external
