// Server-sent events (WHATWG HTML §9.2) until either side ends the exchange.
//
// The queue wakes the stream once when it has something; after sending, the stream looks again 20 ms later before it
// waits to be woken again, so it wakes at most 50 times a second however many events there are. What a slow client does
// not read stays in the queue, which is bounded, drops the excess and counts it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "weir/http/exchange.h"
#include "weir/observe/events.h"

namespace weir::admin {

class EventStream final : public http::Receiver {
 public:
  // Without a queue (for HEAD) the response ends after its head.
  explicit EventStream(std::shared_ptr<EventQueue> queue)
      : queue_(std::move(queue)), link_(std::make_shared<Link>(Link{this})) {}

  // Call it once, attached to the exchange.
  void start(http::Exchange& exchange);

  void body(http::Exchange&, http::BodyPart) override {}
  void expired(http::Exchange& exchange) override;
  void drained(http::Exchange& exchange, std::size_t bytes) override;
  void draining(http::Exchange& exchange) override { exchange.write({{}, true}); }

 private:
  // Found by wakes, which may come after this object is gone.
  struct Link {
    EventStream* stream;
  };

  void look(http::Exchange& exchange);
  bool send(http::Exchange& exchange);
  void wait(http::Exchange& exchange);

  std::shared_ptr<EventQueue> queue_;
  std::shared_ptr<Link> link_;
  std::string text_;
  Time last_sent_{};
  Time next_look_{};      // no events are sent before
  bool is_woken_ = true;  // no wake is outstanding
};

}  // namespace weir::admin
