// Calls limits services over HTTP and gRPC, on the connections of one loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/external/caller.h"
#include "weir/http/client_pool.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/net/tls.h"

namespace weir::external {

class HttpCaller final : public Caller {
 public:
  // Makes, or finds, the TLS settings of a service that uses TLS. Offers HTTP/2 by ALPN.
  using TlsOf = std::function<Result<std::shared_ptr<const TlsClient>>(const LimitsService& service)>;

  // `window_max` as in reply.h. Loop and resolver must outlive it.
  HttpCaller(Loop& loop, Resolver& resolver, Duration window_max, TlsOf tls_of);
  ~HttpCaller() override;

  void call(std::shared_ptr<const LimitsService> service, const ServiceQuestion& question, Done done) override;

 private:
  class OneCall;
  struct Parts;

  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::external
