#include "weir/external/breaker.h"

#include <algorithm>
#include <iterator>

#include "weir/base/bounds.h"

namespace weir::external {
namespace {

constexpr int kRemovedAtOnce = 2;

}  // namespace

bool KeyBreakers::permits(std::string_view key, Time now) {
  remove_idle(now, kRemovedAtOnce);
  const auto found = breakers_.find(key);
  if (found == breakers_.end()) return true;
  Breaker& breaker = *found->second;
  use(found->second, now);
  if (breaker.failures < bounds::breaker_failures_max) return true;
  if (breaker.probing || now < breaker.open_until) return false;
  breaker.probing = true;
  return true;
}

void KeyBreakers::ended(std::string_view key, CallEnd end, Time now) {
  remove_idle(now, kRemovedAtOnce);
  auto found = breakers_.find(key);
  if (end == CallEnd::not_made) {
    if (found != breakers_.end()) found->second->probing = false;
    return;
  }
  if (end == CallEnd::succeeded) {
    if (found != breakers_.end()) remove(found->second);
    return;
  }
  if (found == breakers_.end()) {
    if (breakers_.size() >= bounds::breakers_max) remove(std::prev(by_use_.end()));
    by_use_.push_front({.key = std::string(key)});
    found = breakers_.emplace(by_use_.front().key, by_use_.begin()).first;
  }
  Breaker& breaker = *found->second;
  use(found->second, now);
  breaker.probing = false;
  if (breaker.failures < bounds::breaker_failures_max) ++breaker.failures;
  if (breaker.failures == bounds::breaker_failures_max) breaker.open_until = now + bounds::breaker_open_time;
}

void KeyBreakers::remove_idle(Time now) {
  remove_idle(now, static_cast<int>(bounds::breakers_max));
}

void KeyBreakers::remove_idle(Time now, int at_most) {
  for (int i = 0; i < at_most && !by_use_.empty(); ++i) {
    if (now - by_use_.back().used < bounds::breaker_idle_time) return;
    remove(std::prev(by_use_.end()));
  }
}

std::size_t KeyBreakers::open(Time now) const noexcept {
  std::size_t count = 0;
  for (const Breaker& breaker : by_use_) {
    if (now - breaker.used >= bounds::breaker_idle_time) break;  // this and all that follow are as good as removed
    if (breaker.failures >= bounds::breaker_failures_max) ++count;
  }
  return count;
}

void KeyBreakers::use(Place breaker, Time now) {
  breaker->used = now;
  by_use_.splice(by_use_.begin(), by_use_, breaker);
}

void KeyBreakers::remove(Place breaker) {
  breakers_.erase(breaker->key);
  by_use_.erase(breaker);
}

bool ServiceBreaker::permits(Time now) {
  if (!open_) return true;
  if (now < probe_at_) return false;
  probe_at_ = now + bounds::service_probe_every;
  return true;
}

void ServiceBreaker::ended(CallEnd end, Time now) {
  if (end == CallEnd::not_made) {
    probe_at_ = std::min(probe_at_, now);
    return;
  }
  if (open_) {
    if (end == CallEnd::failed) return;
    open_ = false;
    spans_ = {};
  }
  constexpr Duration kSpan = bounds::service_breaker_window / kSpans;
  const std::int64_t number = now.time_since_epoch() / kSpan;
  Span& span = spans_[static_cast<std::size_t>(number) % kSpans];
  if (span.number != number) span = {number, 0, 0};
  ++span.ended;
  if (end == CallEnd::failed) ++span.failed;
  std::uint32_t ended = 0;
  std::uint32_t failed = 0;
  for (const Span& one : spans_) {
    if (number - one.number >= static_cast<std::int64_t>(kSpans) || one.number < 0) continue;
    ended += one.ended;
    failed += one.failed;
  }
  if (ended < bounds::service_breaker_calls_min || failed * 2 < ended) return;
  open_ = true;
  probe_at_ = now + bounds::service_probe_every;
}

}  // namespace weir::external
