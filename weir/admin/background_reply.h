// A long reply, written on another thread: a list of ten thousand entries takes longer than a loop may block.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "weir/admin/background_tasks.h"
#include "weir/admin/work.h"

namespace weir::admin {

class BackgroundReply final : public Work {
 public:
  // `write` runs on the thread of `background_tasks` and must own what it reads.
  BackgroundReply(BackgroundTasks& background_tasks, std::function<Reply()> write)
      : background_tasks_(background_tasks), write_(std::move(write)) {}

  std::optional<Outcome> advance(Now, const Wake& wake) override {
    if (write_ && !start(wake)) return refuse(503, "unavailable", "too many calls are waiting; try again later");
    if (!progress_->done.load(std::memory_order_acquire)) return {};
    return std::move(progress_->reply);
  }

 private:
  struct Progress {
    Reply reply;
    std::atomic<bool> done{false};  // set after the reply is written
  };

  bool start(const Wake& wake) {
    return background_tasks_.run([progress = progress_, write = std::exchange(write_, {}), wake] {
      progress->reply = write();
      progress->done.store(true, std::memory_order_release);
      wake();
    });
  }

  BackgroundTasks& background_tasks_;
  std::function<Reply()> write_;  // until it has started
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
};

}  // namespace weir::admin
