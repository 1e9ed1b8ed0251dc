#include "weir/admin/live.h"

#include <algorithm>

#include "weir/base/bounds.h"

namespace weir::admin {

Result<std::shared_ptr<EventQueue>> LiveNumbers::subscribe() {
  const std::lock_guard lock(mutex_);
  std::erase_if(viewers_, [](const auto& viewer) { return viewer.expired(); });
  if (viewers_.size() >= bounds::event_subscribers_max) {
    return Error{Fault::overloaded,
                 "at most " + std::to_string(bounds::event_subscribers_max) + " clients can watch at a time"};
  }
  auto viewer = std::make_shared<EventQueue>(EventFilter{});
  viewers_.push_back(viewer);
  return viewer;
}

bool LiveNumbers::take_turn(Time now) {
  const std::lock_guard lock(mutex_);
  if (now < turn_ends_ || now < due_ - kEarly) return false;
  due_ = std::max(due_, now) + kEvery;
  turn_ends_ = now + kTurn;
  return true;
}

void LiveNumbers::publish(const std::string& sample) {
  const std::lock_guard lock(mutex_);
  turn_ends_ = Time{};
  for (const auto& viewer : viewers_) {
    if (const auto queue = viewer.lock()) queue->push(sample);
  }
}

}  // namespace weir::admin
