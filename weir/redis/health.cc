#include "weir/redis/health.h"

#include <algorithm>
#include <chrono>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::redis {

namespace {

constexpr Duration kOddReplyEvery = std::chrono::minutes{1};

}  // namespace

std::string_view print(Trouble trouble) noexcept {
  switch (trouble) {
    case Trouble::unreachable:
      return "unreachable";
    case Trouble::timeout:
      return "timeout";
    case Trouble::lost:
      return "lost";
    case Trouble::overloaded:
      return "overloaded";
    case Trouble::malformed:
      return "malformed";
    default:
      return print(
          static_cast<Refusal>(static_cast<unsigned>(trouble) - static_cast<unsigned>(Trouble::first_refusal)));
  }
}

void Health::set_failure_policy(std::string_view policy) {
  const std::lock_guard lock(mutex_);
  failure_policy_ = policy;
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
  if (down_.load(std::memory_order_relaxed) == 0) return;  // every loop has recovered in the meantime
  if (down_logged_) {
    if (causes_.size() >= bounds::redis_causes_max || std::ranges::find(causes_, why) != causes_.end()) return;
    causes_.emplace_back(why);
    log_(LogLevel::warn, "Redis still unavailable: " + std::string(why));
    return;
  }
  down_logged_ = true;
  down_since_ = now;
  causes_.assign(1, std::string(why));
  log_(LogLevel::warn, "Redis unavailable: " + std::string(why) + "; applying failure_policy " + failure_policy_);
}

void Health::came_up(Time now) {
  const std::lock_guard lock(mutex_);
  if (down_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  if (down_logged_) {
    log_(LogLevel::info, "Redis available again after " +
                             print_duration(std::chrono::ceil<std::chrono::milliseconds>(now - down_since_)));
  } else if (!up_logged_) {
    log_(LogLevel::info, "Redis connected");
  }
  down_logged_ = false;
  up_logged_ = true;
}

void Health::log_odd_reply(Trouble kind, std::string_view reply, Time now) {
  const std::lock_guard lock(mutex_);
  Time& logged = odd_logged_[static_cast<std::size_t>(kind)];
  if (logged != Time{} && now - logged < kOddReplyEvery) return;
  logged = now;
  log_(LogLevel::warn, "Redis reply is not a decision: kind=" + std::string(print(kind)) + " reply=" + quote(reply) +
                           "; applying the failure_policy to such requests");
}

void Health::warn(std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (warned_ == message) return;
  warned_ = message;
  log_(LogLevel::warn, message);
}

}  // namespace weir::redis
