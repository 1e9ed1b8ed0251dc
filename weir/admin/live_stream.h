// GET /ratelimit/live: the dashboard's numbers as server-sent events (WHATWG HTML §9.2) until either side ends the
// exchange. Also takes the sample for all viewers when it gets the turn (live.h).
//
// A viewer that reads slowly misses samples: it gets the newest when it has read the last.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "weir/admin/admin_shared.h"
#include "weir/admin/work.h"
#include "weir/http/exchange.h"
#include "weir/observe/events.h"

namespace weir::admin {

class LiveStream final : public http::Receiver {
 public:
  // `shared` must outlive the exchange. Without a queue (for HEAD) the response ends after its head.
  LiveStream(AdminShared& shared, std::shared_ptr<EventQueue> queue)
      : shared_(shared), queue_(std::move(queue)), link_(std::make_shared<Link>(Link{this})) {}

  // Call it once, attached to the exchange.
  void start(http::Exchange& exchange);

  void body(http::Exchange&, http::BodyPart) override {}
  void expired(http::Exchange& exchange) override;
  void drained(http::Exchange& exchange, std::size_t) override { send(exchange); }
  void draining(http::Exchange& exchange) override { exchange.write({{}, true}); }

 private:
  // Found by wakes, which may come after this object is gone.
  struct Link {
    LiveStream* stream;
  };

  void sample(Now now);
  void send(http::Exchange& exchange);

  AdminShared& shared_;
  std::shared_ptr<EventQueue> queue_;
  std::shared_ptr<Link> link_;
  Wake wake_;
  std::unique_ptr<Work> sampling_;  // not null: it is this stream's turn
  Time next_turn_{};                // when to ask for the turn again
  std::string text_;                // the event that is being written
  std::size_t written_ = 0;         // of text_
};

}  // namespace weir::admin
