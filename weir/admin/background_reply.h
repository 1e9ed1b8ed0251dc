// A long answer, written in another thread: a list of ten thousand entries takes longer than a loop may wait.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "weir/admin/background_tasks.h"
#include "weir/admin/work.h"

namespace weir::admin {

class Writing final : public Work {
 public:
  // `write` runs in the background_tasks' thread and must hold on to what it reads.
  Writing(BackgroundTasks& background_tasks, std::function<Reply()> write) {
    accepted_ = background_tasks.run([progress = progress_, write = std::move(write)] {
      progress->reply = write();
      progress->done.store(true, std::memory_order_release);
    });
  }

  std::optional<Outcome> step(Now) override {
    if (!accepted_) return refuse(503, "unavailable", "too many calls are waiting; try again later");
    if (!progress_->done.load(std::memory_order_acquire)) return {};
    return std::move(progress_->reply);
  }
  Duration pause() const noexcept override { return std::chrono::milliseconds{1}; }

 private:
  struct Progress {
    Reply reply;
    std::atomic<bool> done{false};  // after the reply was written
  };

  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  bool accepted_ = false;
};

}  // namespace weir::admin
