// A change of adjustments or access lists. Runs on another thread, because it may wait for a disk or for Redis.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "weir/admin/background_tasks.h"
#include "weir/admin/work.h"
#include "weir/known/known_keeper.h"

namespace weir::admin {

class KnownChange final : public Work {
 public:
  // `change` starts on the thread of `background_tasks`. `finish` makes the reply of a successful change; `changed`
  // says whether it had an effect.
  KnownChange(BackgroundTasks& background_tasks, std::function<void(const KnownKeeper::Done& done)> change,
              std::function<Reply(bool changed, Now now)> finish)
      : background_tasks_(background_tasks), change_(std::move(change)), finish_(std::move(finish)) {}

  std::optional<Outcome> advance(Now now, const Wake& wake) override {
    if (change_ && !start(wake)) return refuse(503, "unavailable", "too many changes are waiting; try again later");
    std::optional<Result<bool>> changed;
    {
      const std::lock_guard lock(progress_->mutex);
      changed = progress_->changed;
    }
    if (!changed) return {};
    if (*changed) return finish_(**changed, now);
    const Error& error = changed->error();
    const bool away = error.fault == Fault::unavailable || error.fault == Fault::timeout;
    if (away || error.fault == Fault::too_large) return refuse(error);
    return refuse(400, "bad_value", error.detail);
  }

 private:
  // Shared with the callback, which may run after the connection has ended.
  struct Progress {
    std::mutex mutex;
    std::optional<Result<bool>> changed;
  };

  bool start(const Wake& wake) {
    return background_tasks_.run([change = std::exchange(change_, {}), progress = progress_, wake] {
      change([progress, wake](const Result<bool>& changed) {
        {
          const std::lock_guard lock(progress->mutex);
          progress->changed = changed;
        }
        wake();
      });
    });
  }

  BackgroundTasks& background_tasks_;
  std::function<void(const KnownKeeper::Done& done)> change_;  // until it has started
  std::function<Reply(bool changed, Now now)> finish_;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
};

}  // namespace weir::admin
