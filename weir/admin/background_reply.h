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
  BackgroundReply(BackgroundTasks& background_tasks, std::function<Reply()> write) {
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
    std::atomic<bool> done{false};  // set after the reply is written
  };

  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  bool accepted_ = false;
};

}  // namespace weir::admin
