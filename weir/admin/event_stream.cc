#include "weir/admin/event_stream.h"

#include <chrono>

#include "weir/base/bounds.h"

namespace weir::admin {
namespace {

// The least time between two looks at the queue, and the longest silence: a proxy may close a silent connection.
constexpr Duration kLookEvery = std::chrono::milliseconds{20};
constexpr Duration kSilence = std::chrono::seconds{15};
// Sends nothing while the client leaves less room than this. A quarter of the room is for the framing of events.
constexpr std::size_t kRoomBytes = 8u << 10;

}  // namespace

void EventStream::start(http::Exchange& exchange) {
  const http::Response head{200, "text/event-stream", {"Cache-Control: no-store\r\n", {}}, {}};
  if (queue_ == nullptr) return exchange.respond(head, {{}, true});
  exchange.respond(head, {": decisions as they happen\n\n", false});
  last_sent_ = exchange.now().time;
  wait(exchange);
}

// Sends what has happened. False: nothing has, or there is no room.
bool EventStream::send(http::Exchange& exchange) {
  const std::size_t room = exchange.room();
  if (room < kRoomBytes) return false;
  const EventQueue::Taken taken = queue_->take(room / 4 * 3);
  if (taken.events.empty() && taken.dropped == 0) return false;
  text_.clear();
  if (taken.dropped > 0) text_ += "event: dropped\ndata: {\"dropped\":" + std::to_string(taken.dropped) + "}\n\n";
  for (const std::string& event : taken.events) text_.append("event: decision\ndata: ").append(event).append("\n\n");
  exchange.write({text_, false});
  last_sent_ = exchange.now().time;
  return true;
}

// Asks to be woken by the queue, at the latest when the silence is too long.
void EventStream::wait(http::Exchange& exchange) {
  exchange.expire_at(last_sent_ + kSilence);
  if (!is_woken_) return;
  is_woken_ = false;
  queue_->wake_once([ref = exchange.ref(), link = std::weak_ptr<Link>(link_)] {
    ref.run([link](http::Exchange& woken) {
      const std::shared_ptr<Link> alive = link.lock();
      if (alive == nullptr) return;
      alive->stream->is_woken_ = true;
      alive->stream->look(woken);
    });
  });
}

// Looks at the queue now, or when the time for it has come.
void EventStream::look(http::Exchange& exchange) {
  if (exchange.now().time < next_look_) return exchange.expire_at(next_look_);
  expired(exchange);
}

void EventStream::expired(http::Exchange& exchange) {
  const Time now = exchange.now().time;
  next_look_ = now + kLookEvery;
  if (is_woken_ && send(exchange)) return exchange.expire_at(next_look_);
  if (exchange.room() < kRoomBytes) return;  // drained() follows
  if (now - last_sent_ >= kSilence) {
    exchange.write({":\n\n", false});
    last_sent_ = now;
  }
  wait(exchange);
}

void EventStream::drained(http::Exchange& exchange, std::size_t) {
  if (exchange.room() < kRoomBytes) return;
  is_woken_ ? look(exchange) : wait(exchange);
}

}  // namespace weir::admin
