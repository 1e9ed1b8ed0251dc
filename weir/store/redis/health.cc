#include "weir/store/redis/health.h"

#include <algorithm>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::redis {

std::string_view print(Trouble trouble) noexcept {
  switch (trouble) {
    case Trouble::unreachable:
      return "unreachable";
    case Trouble::timeout:
      return "timeout";
    case Trouble::lost:
      return "lost";
    case Trouble::refused:
      return "refused";
    case Trouble::overloaded:
      break;
  }
  return "overloaded";
}

void Health::joined() {
  const std::lock_guard lock(mutex_);
  down_.fetch_add(1, std::memory_order_relaxed);
}

void Health::left(bool was_up) {
  const std::lock_guard lock(mutex_);
  if (!was_up) down_.fetch_sub(1, std::memory_order_relaxed);
}

void Health::went_down(bool was_up, std::string_view why, Time now) {
  const std::lock_guard lock(mutex_);
  if (was_up) down_.fetch_add(1, std::memory_order_relaxed);
  if (down_.load(std::memory_order_relaxed) == 0) return;  // somebody has found the way meanwhile
  if (told_down_) {
    if (causes_.size() >= bounds::redis_causes_max || std::ranges::find(causes_, why) != causes_.end()) return;
    causes_.emplace_back(why);
    log_(LogLevel::warn, "Redis is still of no use: " + std::string(why));
    return;
  }
  told_down_ = true;
  down_since_ = now;
  causes_.assign(1, std::string(why));
  log_(LogLevel::warn, "Redis is of no use: " + std::string(why) + "; the failure policy decides until it is back");
}

void Health::came_up(Time now) {
  const std::lock_guard lock(mutex_);
  if (down_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  if (told_down_) {
    log_(LogLevel::info,
         "Redis is back after " + print_duration(std::chrono::ceil<std::chrono::milliseconds>(now - down_since_)));
  } else if (!told_up_) {
    log_(LogLevel::info, "Redis is connected");
  }
  told_down_ = false;
  told_up_ = true;
}

void Health::warn(std::string_view sentence) {
  const std::lock_guard lock(mutex_);
  if (warned_ == sentence) return;
  warned_ = sentence;
  log_(LogLevel::warn, sentence);
}

}  // namespace weir::redis
