// A handler that gets each request whole, as most handlers want it. A request that arrived in one read costs no copy;
// otherwise its head and body are gathered, within a bound.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/http/handler.h"

namespace weir::http {

class WholeHandler : public Handler {
 public:
  // Content longer than this is refused with too_large().
  virtual std::size_t body_max(const RequestHead& head) const {
    (void)head;
    return bounds::http_body_bytes_max;
  }
  // Called once, before request(); without the content if the client waits for 100 Continue or the content is longer
  // than a window. Returns true if it has responded.
  virtual bool refuse(Exchange& exchange, const RequestHead& head) {
    (void)exchange, (void)head;
    return false;
  }
  // `content` and the bytes of the head are valid until the exchange's queries were asked, `head` during the call.
  virtual void request(Exchange& exchange, const RequestHead& head, std::string_view content) = 0;
  // Responds to content that is longer than body_max(): 413.
  virtual void too_large(Exchange& exchange);

  void begin(Exchange& exchange, const RequestHead& head, BodyPart first) final;
  void body(Exchange&, BodyPart) final {}
};

}  // namespace weir::http
