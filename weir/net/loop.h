// The event loop: one thread, one epoll, everything ready handled in turns. No domain words.
//
// A turn: wait; read the clock once; run the timers that are due; tell each handler what is ready; then run the
// end-of-turn hook, where work collected during the turn is done as one batch.
//
// Thread safety: none, but stop() and post(), which any thread may call; stop() also from a signal handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/socket.h"

namespace weir {

class Loop {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // EPOLLIN, EPOLLOUT, EPOLLHUP, … as epoll gives them. May forget() and destroy any handler, itself included.
    virtual void ready(std::uint32_t events) = 0;
  };
  using TimerId = std::uint64_t;  // 0: none

  // The clock must outlive the loop.
  static Result<std::unique_ptr<Loop>> make(const Clock& clock);

  Result<void> watch(int fd, std::uint32_t events, Handler& handler);
  void change(int fd, std::uint32_t events, Handler& handler);
  // Before the descriptor is closed. What was ready for it in this turn is dropped.
  void forget(int fd, Handler& handler);

  TimerId at(Time when, std::function<void()> run);
  void cancel(TimerId id);

  // Runs in the loop's thread, in a later turn.
  void post(std::function<void()> work);
  void on_end_of_turn(std::function<void()> hook) { end_of_turn_ = std::move(hook); }

  // Until stop().
  void run();
  void stop() noexcept;

  // This turn's reading; taken again when a turn has worked for more than 100 µs.
  Now now() noexcept;
  // The last reading that was taken, without a look at the clock: a few handlers old.
  Now reading() const noexcept { return now_; }

 private:
  explicit Loop(const Clock& clock) noexcept : clock_(clock) {}
  int wait_ms() const;
  void run_timers();
  void run_posted();

  const Clock& clock_;
  Socket epoll_;
  Socket wakeup_;
  Now now_{};
  std::atomic<bool> stopping_{false};
  struct Ready {
    Handler* handler;
    std::uint32_t events;
  };
  std::vector<Ready> ready_;
  std::set<std::pair<Time, TimerId>> due_;
  std::unordered_map<TimerId, std::pair<Time, std::function<void()>>> timers_;
  TimerId next_timer_ = 1;
  std::function<void()> end_of_turn_;
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace weir
