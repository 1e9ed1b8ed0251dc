// When not to ask a limits service: breakers for single keys, and one for the service as a whole.
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
  not_made,  // permitted, but given up before it began: counts as nothing, and a probe may be made again
};

// A key whose last bounds::breaker_failures_max calls failed is not asked for bounds::breaker_open_time; then exactly
// one call is permitted as a probe: its success closes the breaker, its failure opens it again. Only keys that failed
// have a breaker. One that nobody asked for bounds::breaker_idle_time is removed; at most bounds::breakers_max are
// kept, the least recently used is removed first.
class KeyBreakers {
 public:
  // Whether a call for this key may be made now. If true, call ended() exactly once.
  bool permits(std::string_view key, Time now);
  void ended(std::string_view key, CallEnd end, Time now);

  // Removes idle ones; permits() and ended() also do, a few at a time.
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
// them failed. While it is open, one probe per bounds::service_probe_every is permitted, until one succeeds: then it
// closes and starts counting again.
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
