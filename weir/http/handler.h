// Answers the exchanges of an endpoint: the decision API, the admin API, the rate limit service, the proxy. One per
// loop; it outlives its exchanges.
#pragma once

#include "weir/http/exchange.h"

namespace weir::http {

class Handler : public Receiver {
 public:
  // A request has arrived, with as much of its body as was read with it. `head` is valid during the call.
  virtual void begin(Exchange& exchange, const RequestHead& head, BodyPart first) = 0;
  // HTTP/1 pipelining: true if the next request may begin before this one is answered.
  virtual bool overlaps() const noexcept { return false; }
};

}  // namespace weir::http
