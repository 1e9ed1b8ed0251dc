// The edge proxy as a handler of exchanges: each request gets a Relay, which asks whether it may pass and carries it to
// a backend and back.
#pragma once

#include "weir/http/handler.h"
#include "weir/proxy/proxy_shared.h"

namespace weir::proxy {

class ProxyHandler final : public http::Handler {
 public:
  explicit ProxyHandler(ProxyLoop& loop) : loop_(loop) {}

  void begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first) override;
  void body(http::Exchange&, http::BodyPart) override {}
  // Responds to a request whose head cannot be read; it has no relay.
  void refused(http::Exchange& exchange, const HttpProblem& problem) override;

 private:
  ProxyLoop& loop_;
};

}  // namespace weir::proxy
