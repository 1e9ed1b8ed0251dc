#include "weir/observe/events.h"

#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/core/identifier.h"
#include "weir/identify/handle.h"
#include "weir/wire/json.h"

namespace weir {
namespace {

std::string describe(const Label& label, std::string_view hash_key, const LimitDecision& decided, Wall wall) {
  const Decision& decision = decided.strictest();
  const Source source = label.half(decided.stricter()).source;
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("time").string(print_instant(wall));
  const std::string id = shown_id(label, hash_key);
  json.key("limit").string(label.limit).key("id").string(id);
  json.key("identifier").string(identifier_of(label, id)).key("allowed").boolean(decision.allowed);
  json.key("burst").number(decision.burst).key("remaining").number(decision.remaining);
  json.key("retry_after");
  decision.retry_after == kNever ? json.number("-1") : json.number(print_seconds(decision.retry_after));
  json.key("reset_after").number(print_seconds(decision.reset_after));
  json.key("shadow").boolean(label.shadow).key("source").string(print(source)).end_object();
  return text;
}

}  // namespace

bool EventQueue::wants(std::string_view limit, bool allowed) noexcept {
  if (!filter_.limit.empty() && filter_.limit != limit) return false;
  if (filter_.allowed && *filter_.allowed != allowed) return false;
  return matched_.fetch_add(1, std::memory_order_relaxed) % filter_.sample == 0;
}

void EventQueue::push(const std::string& event) {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ + event.size() > bounds::event_queue_bytes_max) {
      ++dropped_;
    } else {
      bytes_ += event.size();
      events_.push_back(event);
    }
    wake.swap(wake_);
  }
  if (wake) wake();
}

void EventQueue::wake_once(std::function<void()> wake) {
  {
    const std::lock_guard lock(mutex_);
    if (events_.empty() && dropped_ == 0) {
      wake_ = std::move(wake);
      return;
    }
  }
  wake();
}

EventQueue::Taken EventQueue::take(std::size_t bytes_max) {
  Taken taken;
  const std::lock_guard lock(mutex_);
  for (std::size_t bytes = 0; !events_.empty() && bytes < bytes_max; events_.pop_front()) {
    bytes += events_.front().size();
    bytes_ -= events_.front().size();
    taken.events.push_back(std::move(events_.front()));
  }
  taken.dropped = std::exchange(dropped_, 0);
  return taken;
}

// Returns the current subscribers. REQUIRES: mutex_ is held.
std::vector<std::shared_ptr<EventQueue>> Events::live() {
  std::vector<std::shared_ptr<EventQueue>> all;
  std::erase_if(queues_, [&](const std::weak_ptr<EventQueue>& weak) {
    std::shared_ptr<EventQueue> queue = weak.lock();
    if (queue == nullptr) return true;
    all.push_back(std::move(queue));
    return false;
  });
  subscribers_.store(queues_.size(), std::memory_order_relaxed);
  return all;
}

Result<std::shared_ptr<EventQueue>> Events::subscribe(EventFilter filter) {
  const std::lock_guard lock(mutex_);
  if (live().size() >= bounds::event_subscribers_max) {
    return Error{Fault::unavailable,
                 std::to_string(bounds::event_subscribers_max) + " subscribers are connected, which is the maximum"};
  }
  auto queue = std::make_shared<EventQueue>(std::move(filter));
  queues_.push_back(queue);
  subscribers_.store(queues_.size(), std::memory_order_relaxed);
  return queue;
}

void Events::publish(const Answer& answer) {
  std::vector<std::shared_ptr<EventQueue>> queues;
  {
    const std::lock_guard lock(mutex_);
    queues = live();
  }
  const Decisions& all = answer.verdict.all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Label& label = answer.labels[i];
    std::string text;
    for (const std::shared_ptr<EventQueue>& queue : queues) {
      if (!queue->wants(label.limit, all[i].allowed())) continue;
      if (text.empty()) text = describe(label, answer.hash_key, all[i], answer.now.wall);
      queue->push(text);
    }
  }
}

}  // namespace weir
