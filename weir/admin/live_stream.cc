#include "weir/admin/live_stream.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <variant>

#include "weir/admin/calls.h"

namespace weir::admin {

void LiveStream::start(http::Exchange& exchange) {
  const http::Response head{200, "text/event-stream", {"Cache-Control: no-store\r\n", {}}, {}};
  if (queue_ == nullptr) return exchange.respond(head, {{}, true});
  exchange.respond(head, {": one sample a second\n\n", false});
  wake_ = [ref = exchange.ref(), link = std::weak_ptr<Link>(link_)] {
    ref.run([link](http::Exchange& woken) {
      if (const std::shared_ptr<Link> alive = link.lock()) alive->stream->expired(woken);
    });
  };
  queue_->wake_once(wake_);
  expired(exchange);
}

void LiveStream::expired(http::Exchange& exchange) {
  sample(shared_.clock.now());
  send(exchange);
  exchange.expire_at(sampling_ == nullptr ? next_turn_ : std::min(next_turn_, sampling_->wake_at()));
}

// Takes the sample, or a step of it, if it is this stream's turn.
void LiveStream::sample(Now now) {
  if (now.time >= next_turn_) {
    next_turn_ = now.time + LiveNumbers::kEvery - LiveNumbers::kEarly;
    if (sampling_ == nullptr && shared_.live.take_turn(now.time)) sampling_ = sample_numbers(shared_);
  }
  if (sampling_ == nullptr) return;
  const std::optional<Outcome> outcome = sampling_->advance(now, wake_);
  if (!outcome) return;
  sampling_.reset();
  const auto* const reply = std::get_if<Reply>(&*outcome);
  if (reply != nullptr && reply->status == 200) shared_.live.publish(reply->content);
}

// Writes the newest sample, as far as the viewer has room for it.
void LiveStream::send(http::Exchange& exchange) {
  if (written_ == text_.size()) {
    const EventQueue::Taken taken = queue_->take(SIZE_MAX);
    queue_->wake_once(wake_);
    if (taken.events.empty()) return;
    text_ = "event: numbers\ndata: " + taken.events.back() + "\n\n";
    written_ = 0;
  }
  const std::size_t now = std::min(exchange.room(), text_.size() - written_);
  if (now == 0) return;
  exchange.write({std::string_view(text_).substr(written_, now), false});
  written_ += now;
}

}  // namespace weir::admin
