// One limits service, shared by all loops: the keys being asked, their waiters, the calls in flight, and the breakers.
// Internal to this folder; other folders use services.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/time.h"
#include "weir/external/breaker.h"
#include "weir/external/question.h"
#include "weir/external/services.h"
#include "weir/observe/service_metrics.h"
#include "weir/policy/limits_service.h"

namespace weir::external {

// Runs work on a loop from other threads. Does nothing once the loop is gone.
class Port : public std::enable_shared_from_this<Port> {
 public:
  Port(LoopServices& loop, LoopServices::Post post) : loop_(&loop), post_(std::move(post)) {}

  // Runs `work` on the loop's thread in a later turn. Thread-safe.
  template <class Work>
  void run(Work work) {
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return;
    post_([port = shared_from_this(), work = std::move(work)] {
      if (LoopServices* const loop = port->loop(); loop != nullptr) work(*loop);
    });
  }
  // Call it on the loop's thread, or after that thread has stopped.
  void close() {
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }

 private:
  LoopServices* loop() {
    const std::lock_guard lock(mutex_);
    return loop_;
  }

  std::mutex mutex_;
  LoopServices* loop_;
  LoopServices::Post post_;
};

// One attempt to get the answer for one key: read the shared copy, wait for a slot, call the service.
struct Flight {
  Flight(Service& of, std::shared_ptr<const LimitsService> with, std::string_view id, ServiceQuestion asks)
      : service(&of), settings(std::move(with)), key(id), question(std::move(asks)) {}

  Service* const service;
  const std::shared_ptr<const LimitsService> settings;
  const std::string key;
  const ServiceQuestion question;
  // Set before other threads see the flight, constant afterward.
  bool may_call = true;  // false: a breaker is open, only the shared copy is read
  bool probes = false;   // the service's breaker is open: nobody waits
  // Under the service's lock.
  std::vector<std::pair<std::shared_ptr<Port>, std::uint64_t>> waiters;  // including those who have left
  std::size_t waiting = 0;                                               // without those who have left
  bool calling = false;
  bool ended = false;
  bool forgotten = false;

  bool is_forgotten() const;
};

enum class Slot : unsigned char {
  taken,
  queued,
  none,  // no slot is free and all waiters have left, or the service's breaker is open
};

// What Service::end() leaves for the caller to do.
struct Departed {
  std::map<std::shared_ptr<Port>, std::vector<std::uint64_t>> waits;
  std::vector<std::shared_ptr<Flight>> next;      // got a slot: make the call
  std::vector<std::shared_ptr<Flight>> hopeless;  // will get no slot, because the service's breaker is open: end them
};

// Thread-safe, except for the functions that require the lock.
struct Service {
  explicit Service(std::string name) : limit(std::move(name)) {}

  const std::string limit;
  mutable std::mutex mutex;
  // All below under the lock.
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights;
  std::deque<std::shared_ptr<Flight>> queue;  // flights that wait for a slot, oldest first
  std::size_t calls = 0;
  std::size_t waiting = 0;
  KeyBreakers keys;
  ServiceBreaker breaker;
  bool failing = false;     // the last call that ended failed
  Time unanswered_since{};  // while calls are in flight or failing: none has succeeded since

  // Returns true if both breakers permit a call; then end() must report its outcome. REQUIRES: the lock.
  bool permits(std::string_view key, Time now);
  // Returns true if calls are in flight, or the last one failed, and none has succeeded for bounds::service_slow_time.
  // Without the second condition, requests would wait again whenever all calls of a hanging service have timed out.
  // REQUIRES: the lock.
  bool is_slow(Time now) const noexcept {
    return (calls > 0 || failing) && now - unanswered_since >= bounds::service_slow_time;
  }
  // REQUIRES: the lock.
  void join(Flight& flight, const std::shared_ptr<Port>& port, std::uint64_t wait);
  // Returns false if a recent read found no shared copy of the key: do not read it again yet. REQUIRES: the lock.
  bool may_read_shared(std::string_view key, Time now);

  void note_absent(std::string_view key, Time now);
  Slot take_slot(const std::shared_ptr<Flight>& flight, Time now);
  void leave(Flight& flight);
  Departed end(const std::shared_ptr<Flight>& flight, CallEnd call, Time now);
  // Marks the flights of this key, or all flights: their answers will not be cached.
  void forget(std::string_view key, bool all);
  // Returns true at most once a minute per kind of log line.
  bool may_log(std::string_view kind, Time now);
  void add_to(ServiceGauges& gauges, Time now) const;

 private:
  void count_call(Flight& flight, Time now);
  void drop(Flight& flight, CallEnd call, Time now);
  void turn_absent(Time now);

  // Keys found without a shared copy, in the current time span and the one before.
  std::unordered_set<std::string> absent_;
  std::unordered_set<std::string> absent_before_;
  Time absent_until_{};
  std::map<std::string, Time, std::less<>> logged_;
};

}  // namespace weir::external
