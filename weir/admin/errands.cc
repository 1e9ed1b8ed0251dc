#include "weir/admin/errands.h"

#include <utility>

#include "weir/base/bounds.h"

namespace weir::admin {

Errands::~Errands() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Errands::run(std::function<void()> errand) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= bounds::errands_max) return false;
    waiting_.push_back(std::move(errand));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
  return true;
}

void Errands::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const std::function<void()> errand = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    errand();
    lock.lock();
  }
}

}  // namespace weir::admin
