#include "weir/net/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "weir/base/assert.h"

namespace weir {
namespace {

// Handlers called in one turn. The rest wait for the next turn, so that timers and the batch run in between.
constexpr int kReadyMax = 256;
// Maximum age of a clock reading within a turn.
constexpr Duration kReadingAgeMax = std::chrono::microseconds{100};
// Handlers between two checks of that age: a check costs about 1% of a request.
constexpr std::size_t kHandlersPerReading = 8;
// Longest sleep. Limits how long a lost wake-up could go unnoticed.
constexpr Duration kSleepMax = std::chrono::seconds{60};

}  // namespace

Result<std::unique_ptr<Loop>> Loop::make(const Clock& clock) {
  std::unique_ptr<Loop> loop(new Loop(clock));
  loop->epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  loop->wakeup_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (!loop->epoll_ || !loop->wakeup_ || epoll_ctl(loop->epoll_.fd(), EPOLL_CTL_ADD, loop->wakeup_.fd(), &event) != 0) {
    return Error{Fault::unavailable, std::string("cannot create an event loop: ") + std::strerror(errno)};
  }
  loop->now_ = clock.now();
  return loop;
}

Loop::~Loop() {
  destroy_retired();
}

Result<void> Loop::watch(int fd, std::uint32_t events, Handler& handler) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Error{Fault::unavailable, "cannot watch descriptor " + std::to_string(fd) + ": " + std::strerror(errno)};
}

void Loop::change(int fd, std::uint32_t events, Handler& handler) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &handler;
  WEIR_ASSERT(epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void Loop::forget(int fd, Handler& handler) {
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
  for (Ready& ready : ready_) {
    if (ready.handler == &handler) ready.handler = nullptr;
  }
}

Loop::TimerId Loop::at(Time when, std::function<void()> run) {
  const TimerId id = next_timer_++;
  due_.emplace(when, id);
  timers_.emplace(id, std::pair(when, std::move(run)));
  return id;
}

void Loop::cancel(TimerId id) {
  const auto timer = timers_.find(id);
  if (timer == timers_.end()) return;
  due_.erase({timer->second.first, id});
  timers_.erase(timer);
}

void Loop::post(std::function<void()> work) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  (void)!write(wakeup_.fd(), &one, sizeof one);  // a full counter means a wake-up is already pending
}

void Loop::stop() noexcept {
  stopping_.store(true);
  const std::uint64_t one = 1;
  (void)!write(wakeup_.fd(), &one, sizeof one);
}

int Loop::wait_ms() const {
  if (!settlers_.empty()) return 0;
  if (due_.empty()) return static_cast<int>(kSleepMax / std::chrono::milliseconds{1});
  const Duration left = std::clamp(due_.begin()->first - now_.time, Duration::zero(), kSleepMax);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void Loop::run() {
  std::array<epoll_event, kReadyMax> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_.fd(), events.data(), kReadyMax, wait_ms());
    WEIR_ASSERT(count >= 0 || errno == EINTR);
    now_ = clock_.now();
    bool posted = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      posted |= event.data.ptr == nullptr;
      if (event.data.ptr != nullptr) ready_.push_back({static_cast<Handler*>(event.data.ptr), event.events});
    }
    // Timers run after the list is filled: a timer may destroy a handler, and forget() must find it in the list.
    run_timers();
    if (posted) run_posted();
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      if (i % kHandlersPerReading == kHandlersPerReading - 1) (void)now();
      if (ready_[i].handler != nullptr) ready_[i].handler->ready(ready_[i].events);
    }
    ready_.clear();
    settle_turn();
    destroy_retired();
  }
  stopping_.store(false);  // it may run again
}

void Loop::settle_turn() {
  if (end_of_turn_) end_of_turn_();
  for (int pass = 0; pass < kSettlePasses && !settlers_.empty(); ++pass) {
    settling_.take_all_from(settlers_);
    while (!settling_.empty()) settling_.take_first().settle();
    if (end_of_turn_) end_of_turn_();
  }
}

// An object may retire others when it is destroyed.
void Loop::destroy_retired() noexcept {
  while (!retired_.empty()) {
    const std::unique_ptr<Retired> last = std::move(retired_.back());
    retired_.pop_back();
  }
}

void Loop::Settlers::take_all_from(Settlers& other) noexcept {
  if (other.empty()) return;
  next_ = other.next_;
  previous_ = other.previous_;
  next_->previous_ = previous_->next_ = this;
  other.previous_ = other.next_ = &other;
}

Settler& Loop::Settlers::take_first() noexcept {
  Settler& first = *next_;
  forget(first);
  return first;
}

void Loop::settle_later(Settler& settler) noexcept {
  if (settler.previous_ != nullptr) return;
  settler.previous_ = settlers_.previous_;
  settler.next_ = &settlers_;
  settlers_.previous_->next_ = &settler;
  settlers_.previous_ = &settler;
}

void Loop::forget(Settler& settler) noexcept {
  if (settler.previous_ == nullptr) return;
  settler.previous_->next_ = settler.next_;
  settler.next_->previous_ = settler.previous_;
  settler.previous_ = settler.next_ = nullptr;
}

void Loop::retire(std::unique_ptr<Retired> object) {
  retired_.push_back(std::move(object));
}

void Loop::run_timers() {
  // A timer that is set for now or earlier during this turn runs in the next one, so that this turn ends.
  const TimerId until = next_timer_;
  while (!due_.empty() && due_.begin()->first <= now_.time && due_.begin()->second < until) {
    const auto timer = timers_.find(due_.begin()->second);
    due_.erase(due_.begin());
    const std::function<void()> run = std::move(timer->second.second);
    timers_.erase(timer);
    run();
  }
}

void Loop::run_posted() {
  std::uint64_t count = 0;
  (void)!read(wakeup_.fd(), &count, sizeof count);
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(posted_mutex_);
    work.swap(posted_);
  }
  for (const auto& run : work) run();
}

Now Loop::now() noexcept {
  if (clock_.time() - now_.time > kReadingAgeMax) now_ = clock_.now();
  return now_;
}

}  // namespace weir
