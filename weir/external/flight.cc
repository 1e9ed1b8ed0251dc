#include "weir/external/flight.h"

#include <algorithm>

#include "weir/base/bounds.h"

namespace weir::external {
namespace {

// How long a missing shared copy is not looked for again.
constexpr Duration kAbsentTime = std::chrono::seconds{5};
constexpr Duration kLogEvery = std::chrono::minutes{1};

}  // namespace

bool Flight::is_forgotten() const {
  const std::lock_guard lock(service->mutex);
  return forgotten;
}

bool Service::permits(std::string_view key, Time now) {
  if (!keys.permits(key, now)) return false;
  if (breaker.permits(now)) return true;
  keys.ended(key, CallEnd::not_made, now);
  return false;
}

void Service::join(Flight& flight, const std::shared_ptr<Port>& port, std::uint64_t wait) {
  flight.waiters.emplace_back(port, wait);
  ++flight.waiting;
  ++waiting;
}

// Rotates two sets, so that whole spans of keys expire at once, without a time per key.
void Service::turn_absent(Time now) {
  if (now < absent_until_ && absent_.size() < bounds::breakers_max) return;
  absent_before_ = now - absent_until_ < kAbsentTime ? std::exchange(absent_, {}) : std::unordered_set<std::string>{};
  absent_.clear();
  absent_until_ = now + kAbsentTime;
}

bool Service::may_read_shared(std::string_view key, Time now) {
  turn_absent(now);
  const std::string name(key);
  return !absent_.contains(name) && !absent_before_.contains(name);
}

void Service::note_absent(std::string_view key, Time now) {
  const std::lock_guard lock(mutex);
  turn_absent(now);
  absent_.emplace(key);
}

// REQUIRES: the lock.
void Service::count_call(Flight& flight, Time now) {
  if (calls++ == 0 && !failing) unanswered_since = now;
  flight.calling = true;
}

Slot Service::take_slot(const std::shared_ptr<Flight>& flight, Time now) {
  const std::lock_guard lock(mutex);
  if (breaker.is_open() && !flight->probes) return Slot::none;
  if (calls < flight->settings->concurrent_max) {
    count_call(*flight, now);
    return Slot::taken;
  }
  if (flight->waiting == 0) return Slot::none;
  queue.push_back(flight);
  return Slot::queued;
}

void Service::leave(Flight& flight) {
  const std::lock_guard lock(mutex);
  if (flight.ended) return;
  --flight.waiting;
  --waiting;
}

// REQUIRES: the lock.
void Service::drop(Flight& flight, CallEnd call, Time now) {
  flight.ended = true;
  waiting -= flight.waiting;
  if (const auto found = flights.find(flight.key); found != flights.end() && found->second.get() == &flight) {
    flights.erase(found);
  }
  if (!flight.may_call) return;
  keys.ended(flight.key, call, now);
  if (call != CallEnd::not_made || flight.probes) breaker.ended(call, now);
}

Departed Service::end(const std::shared_ptr<Flight>& flight, CallEnd call, Time now) {
  Departed departed;
  const std::lock_guard lock(mutex);
  drop(*flight, call, now);
  for (const auto& [port, wait] : flight->waiters) departed.waits[port].push_back(wait);
  if (!flight->calling) return departed;
  --calls;
  if (call != CallEnd::not_made) failing = call == CallEnd::failed;
  if (call == CallEnd::succeeded) unanswered_since = now;
  if (breaker.is_open()) {
    departed.hopeless.assign(queue.begin(), queue.end());
    queue.clear();
    return departed;
  }
  while (!queue.empty() && calls < queue.front()->settings->concurrent_max) {
    std::shared_ptr<Flight> next = std::move(queue.front());
    queue.pop_front();
    if (next->waiting == 0) {  // all have left
      drop(*next, CallEnd::not_made, now);
      continue;
    }
    count_call(*next, now);
    departed.next.push_back(std::move(next));
  }
  return departed;
}

void Service::forget(std::string_view key, bool all) {
  const std::lock_guard lock(mutex);
  absent_.clear();
  absent_before_.clear();
  for (const auto& [name, flight] : flights) {
    if (all || name == key) flight->forgotten = true;
  }
}

bool Service::may_log(std::string_view kind, Time now) {
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = logged_.emplace(kind, now);
  if (!fresh && now - at->second < kLogEvery) return false;
  at->second = now;
  return true;
}

void Service::add_to(ServiceGauges& gauges, Time now) const {
  const std::lock_guard lock(mutex);
  gauges.in_flight += calls;
  gauges.waiting += waiting;
  gauges.breakers_open += keys.open(now);
  gauges.services.emplace_back(limit, breaker.is_open());
}

}  // namespace weir::external
