// For tests: a loop that runs on its own thread.
#pragma once

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "weir/base/clock.h"
#include "weir/net/loop.h"

namespace weir {

class LoopThread {
 public:
  ~LoopThread() {
    loop_->stop();
    thread_.join();
  }

  Loop& loop() noexcept { return *loop_; }

  // Runs `work` on the loop's thread and returns its result.
  template <class Work>
  auto run(Work work) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto done = task.get_future();
    loop_->post([&task] { task(); });
    return done.get();
  }

 private:
  BootClock clock_;
  std::unique_ptr<Loop> loop_ = std::move(*Loop::make(clock_));
  std::thread thread_{[this] { loop_->run(); }};
};

}  // namespace weir
