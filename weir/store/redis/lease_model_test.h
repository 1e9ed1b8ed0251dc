// A C++ model of what gcra.lua does for leases, for histories that would take too long on Redis. A test compares it
// with the script.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "weir/algorithm/gcra.h"
#include "weir/store/redis/leases.h"

namespace weir::redis {

class LeaseModel {
 public:
  struct Granted {
    bool full = false;
    Count fit = 0;
    Count leased = 0;
    Decision left;  // the bucket's state, if nothing is asked
  };

  explicit LeaseModel(const Leases::Terms& terms) : terms_(terms) {}

  bool spend(Count cost, Time now) {
    const auto step = gcra::spend(terms_.limit, tat_, cost, now);
    tat_ = step.tat;
    return step.decision.allowed;
  }
  void reset() { tat_ = {}; }
  Granted lease(Count cost, Count asks, Count want, const std::string& holder, std::uint64_t serial, Time now) {
    Granted granted;
    while (granted.fit < asks && spend(cost, now)) ++granted.fit;
    if (granted.fit == asks && want > 0) {
      const Count room = gcra::peek(terms_.limit, tat_, 0, now).remaining;
      std::erase_if(places_, [&](const auto& place) { return place.second.end <= now; });
      granted.full =
          room > 0 && places_.size() - places_.count(holder) >= static_cast<std::size_t>(terms_.lease.servers);
      granted.leased = granted.full ? 0 : std::min(want, room);
      if (granted.leased > 0) {
        spend(granted.leased, now);
        places_[holder] = {serial, std::chrono::floor<std::chrono::milliseconds>(now) + kLeasePlace};
      }
    }
    granted.left = gcra::peek(terms_.limit, tat_, 0, now);
    return granted;
  }
  void give_back(Count tokens, const std::string& holder, std::uint64_t serial, Time now) {
    const auto place = places_.find(holder);
    if (place == places_.end() || place->second.serial != serial || place->second.end <= now) return;
    places_.erase(place);
    tat_ = gcra::refund(terms_.limit, tat_, tokens, now).tat;
  }
  Time tat() const noexcept { return tat_; }

 private:
  struct Place {
    std::uint64_t serial;
    Time end;
  };
  Leases::Terms terms_;
  Time tat_{};
  std::map<std::string, Place> places_;
};

}  // namespace weir::redis
