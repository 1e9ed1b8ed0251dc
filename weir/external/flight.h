// One service as all loops see it: which keys are being asked, who waits for them, how many calls are on their way, and
// its breakers. For the sources of this folder; others use services.h.
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

// The way to a loop from other threads. When the loop is gone, it leads nowhere.
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
  // On the loop's thread, or when that does not run any more.
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

// Getting the answer for one key: reading the shared copy, waiting for a slot, the call.
struct Flight {
  Flight(Service& of, std::shared_ptr<const LimitsService> with, std::string_view id, ServiceQuestion asks)
      : service(&of), settings(std::move(with)), key(id), question(std::move(asks)) {}

  Service* const service;
  const std::shared_ptr<const LimitsService> settings;
  const std::string key;
  const ServiceQuestion question;
  // Fixed before others see it.
  bool may_call = true;  // false: a breaker is open, only the shared copy is read
  bool probes = false;   // the service's breaker is open: nobody waits
  // Under the service's lock.
  std::vector<std::pair<std::shared_ptr<Port>, std::uint64_t>> waiters;  // those who have left included
  std::size_t waiting = 0;                                               // of them
  bool calling = false;
  bool ended = false;
  bool forgotten = false;

  bool is_forgotten() const;
};

enum class Slot : unsigned char {
  taken,
  queued,
  none,  // and nobody waits for one, or the service's breaker has opened
};

// What follows from the end of a flight.
struct Departed {
  std::map<std::shared_ptr<Port>, std::vector<std::uint64_t>> waits;
  std::vector<std::shared_ptr<Flight>> next;      // have got a slot
  std::vector<std::shared_ptr<Flight>> hopeless;  // will get none: the service's breaker has opened. End them
};

// Thread-safe, but for what begin() uses under its lock.
struct Service {
  explicit Service(std::string name) : limit(std::move(name)) {}

  const std::string limit;
  mutable std::mutex mutex;
  // All below under the lock.
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights;
  std::deque<std::shared_ptr<Flight>> queue;  // wait for a slot, the oldest first
  std::size_t calls = 0;
  std::size_t waiting = 0;
  KeyBreakers keys;
  ServiceBreaker breaker;
  Time unanswered_since{};  // while calls are on their way: none has succeeded since

  // REQUIRES: the lock. Whether both breakers permit a call; if so, end() reports how it ended.
  bool permits(std::string_view key, Time now);
  // REQUIRES: the lock. Whether calls are on their way, and none has succeeded for bounds::service_slow_time.
  bool is_slow(Time now) const noexcept { return calls > 0 && now - unanswered_since >= bounds::service_slow_time; }
  void join(Flight& flight, const std::shared_ptr<Port>& port, std::uint64_t wait);
  // Whether the shared copy of a key may exist: it did not lately, or was not read lately.
  bool may_read_shared(std::string_view key, Time now);

  void note_absent(std::string_view key, Time now);
  Slot take_slot(const std::shared_ptr<Flight>& flight, Time now);
  void leave(Flight& flight);
  Departed end(const std::shared_ptr<Flight>& flight, CallEnd call, Time now);
  // The answers of these flights are not kept.
  void forget(std::string_view key, bool all);
  // Whether a line about this may be written: one per kind and minute.
  bool may_log(std::string_view kind, Time now);
  void add_to(ServiceGauges& gauges, Time now) const;

 private:
  void count_call(Flight& flight, Time now);
  void drop(Flight& flight, CallEnd call, Time now);
  void turn_absent(Time now);

  // Keys without a shared copy, of this span of time and the one before.
  std::unordered_set<std::string> absent_;
  std::unordered_set<std::string> absent_before_;
  Time absent_until_{};
  std::map<std::string, Time, std::less<>> logged_;
};

}  // namespace weir::external
