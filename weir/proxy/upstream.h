// Which backend takes the next request: round robin over healthy backends. No I/O; time is an argument.
//
// Three failures in a row (connecting, handshake, a reset before the response head, a response timeout; not a 5xx)
// eject a backend for 10 s, then twice as long after each further failure, at most 60 s; a success clears it. While all
// of a group are ejected, one request at a time goes to the one due soonest. The only backend of a group is never
// ejected.
//
// Thread-safe: the loops of a process share what they know about a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/time.h"
#include "weir/observe/counter.h"
#include "weir/observe/proxy_metrics.h"

namespace weir::proxy {

enum class UpstreamOutcome : unsigned char {
  success,  // a response head, whatever its status
  failure,
  unknown,  // the client has gone, or the backend was not asked
};

// What an outcome changed about a backend, for the log.
enum class UpstreamChange : unsigned char {
  none,
  went_down,  // the third failure in a row
  came_back,  // a success after that
};

class Upstreams;

// The backends of one route.
class UpstreamGroup {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Choice {
    std::size_t index = kNone;  // into the group; kNone: none is left
    bool probe = false;         // all are ejected: this request tries one
    Time at{};                  // when it was chosen
  };

  UpstreamGroup(Upstreams& upstreams, std::span<const std::string> names);

  // `tried` has a bit for each backend that this request has tried. Call finished() once for every backend chosen.
  Choice choose(std::uint64_t tried, Time now);
  UpstreamChange finished(const Choice& choice, UpstreamOutcome outcome, Time now);
  std::size_t size() const noexcept { return members_.size(); }

 private:
  Upstreams& upstreams_;
  std::vector<std::size_t> members_;  // indexes into Upstreams::known_
  std::size_t next_ = 0;
  bool probing_ = false;
};
static_assert(bounds::proxy_backends_max <= 64, "`tried` has a bit for each");

// What is known about every backend, by its URL. Must outlive the groups.
class Upstreams {
 public:
  // Returns the same group for the same names.
  std::shared_ptr<UpstreamGroup> group(std::span<const std::string> names);
  // Each backend of a live group, by name, for metrics.
  std::vector<BackendState> list() const;

 private:
  friend class UpstreamGroup;
  struct Health {
    explicit Health(std::string given) : name(std::move(given)) {}

    std::string name;
    unsigned failures = 0;  // in a row
    std::uint64_t failed = 0;
    Histogram seconds;  // from the choice to the response head
    Duration ejected_for{};
    Time ejected_until = Time::min();

    bool ejected(Time now) const noexcept { return now < ejected_until; }
  };

  std::size_t find(const std::string& name);

  mutable std::mutex mutex_;  // of everything, groups included
  std::deque<Health> known_;
  std::map<std::vector<std::string>, std::weak_ptr<UpstreamGroup>> groups_;
};

}  // namespace weir::proxy
