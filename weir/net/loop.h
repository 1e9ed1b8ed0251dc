// The event loop of one thread, on epoll.
//
// One turn: wait for events, read the clock once, run due timers, call the handlers of ready descriptors. Then the turn
// settles: the end-of-turn hook handles the work collected during the turn as one batch, and every settler that was
// queued runs once. Finally retired objects are destroyed.
//
// Thread safety: none, except stop() and post(), which any thread may call. stop() is async-signal-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/socket.h"

namespace weir {

// Work that is collected during a turn and done once at its end, however often it was requested. Queued in an intrusive
// list, so that queueing does not allocate.
class Settler {
 public:
  Settler() = default;
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;
  virtual void settle() = 0;

 protected:
  ~Settler() = default;

 private:
  friend class Loop;
  Settler* previous_ = nullptr;  // null: not queued
  Settler* next_ = nullptr;
};

// An object that the loop destroys after the turn has settled, so that no object is destroyed inside its own callback.
struct Retired {
  virtual ~Retired() = default;
};

class Loop {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // `events` is the epoll event mask (EPOLLIN, EPOLLOUT, EPOLLHUP, …). May forget() and destroy any handler,
    // including itself.
    virtual void ready(std::uint32_t events) = 0;
  };
  using TimerId = std::uint64_t;  // 0 is no timer

  // The clock must outlive the loop.
  static Result<std::unique_ptr<Loop>> make(const Clock& clock);
  ~Loop();

  Result<void> watch(int fd, std::uint32_t events, Handler& handler);
  void change(int fd, std::uint32_t events, Handler& handler);
  // Stops watching `fd`. Call it before the descriptor is closed. Drops events of this turn that the handler has not
  // received yet.
  void forget(int fd, Handler& handler);

  TimerId at(Time when, std::function<void()> run);
  void cancel(TimerId id);

  // Runs `work` on the loop's thread in a later turn.
  void post(std::function<void()> work);
  void on_end_of_turn(std::function<void()> hook) { end_of_turn_ = std::move(hook); }

  // Calls settler.settle() at the end of this turn, after the end-of-turn hook. A settler that is queued while settlers
  // run gets another pass with the hook before it, at most kSettlePasses in all; then it waits for the next turn, which
  // starts at once.
  void settle_later(Settler& settler) noexcept;
  static constexpr int kSettlePasses = 4;
  // Removes a settler that is about to be destroyed. Does nothing if it is not queued.
  static void forget(Settler& settler) noexcept;
  // Destroys `object` after this turn has settled, or with the loop.
  void retire(std::unique_ptr<Retired> object);

  // Buffers for event handlers, so that connections need none of their own. Valid until the handler returns.
  struct Scratch {
    std::array<char, 64 << 10> bytes;
    std::string text;
  };
  Scratch& scratch() noexcept { return *scratch_; }

  // Returns after stop(). May be called again.
  void run();
  void stop() noexcept;

  // Returns this turn's clock reading. Reads the clock again once a turn has run for more than 100 µs.
  Now now() noexcept;
  // Returns the last clock reading without reading the clock. It can be a few handlers old.
  Now reading() const noexcept { return now_; }

 private:
  // The head of a list of settlers.
  struct Settlers final : Settler {
    Settlers() noexcept { previous_ = next_ = this; }
    bool empty() const noexcept { return next_ == this; }
    void settle() override {}
    void take_all_from(Settlers& other) noexcept;
    Settler& take_first() noexcept;
  };

  explicit Loop(const Clock& clock) noexcept : clock_(clock) {}
  int wait_ms() const;
  void run_timers();
  void run_posted();
  void settle_turn();
  void destroy_retired() noexcept;

  const Clock& clock_;
  Socket epoll_;
  Socket wakeup_;
  Now now_{};
  std::unique_ptr<Scratch> scratch_{new Scratch};
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
  Settlers settlers_;  // for the next pass
  Settlers settling_;  // in this pass
  std::vector<std::unique_ptr<Retired>> retired_;
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace weir
