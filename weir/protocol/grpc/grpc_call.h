// One gRPC call, from its first bytes to its status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/time.h"
#include "weir/http/exchange.h"
#include "weir/protocol/grpc/grpc_handler.h"
#include "weir/protocol/grpc/rls_messages.h"
#include "weir/wire/grpc.h"
#include "weir/wire/http.h"

namespace weir {

class GrpcCall final : public http::Receiver {
 public:
  enum class Kind : unsigned char { should_rate_limit, check, watch, other };

  GrpcCall(GrpcHandler& handler, Kind kind, Time begun) : handler_(handler), kind_(kind), begun_(begun) {}

  void begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first);

  void body(http::Exchange& exchange, http::BodyPart part) override;
  void answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override;
  void can_ask(http::Exchange& exchange) override;
  void expired(http::Exchange& exchange) override;
  void refused(http::Exchange& exchange, const HttpProblem& problem) override;
  void draining(http::Exchange& exchange) override;
  void ended(http::Exchange& exchange, http::Ending ending) override;

 private:
  void take(http::Exchange& exchange, std::string_view bytes, bool last);
  void message(http::Exchange& exchange, std::string_view bytes);
  void ask(http::Exchange& exchange, std::string_view bytes);
  void tell_health(http::Exchange& exchange, std::string_view bytes);
  // Writes the message of a health check to the handler's scratch.
  void write_health();
  rls::Health health() const;
  // Sends the whole response, or the status that says why there is none.
  void succeed(http::Exchange& exchange);
  void fail(http::Exchange& exchange, grpc::Status status, std::string_view message);
  void count(grpc::Status status);

  GrpcHandler& handler_;
  const Kind kind_;
  const Time begun_;
  bool done_ = false;            // a status was sent
  bool watching_ = false;        // a health that the client wants to know about
  bool service_known_ = true;    // the service whose health is asked
  rls::Health told_{};           // the health the client knows
  std::string held_;             // the body so far, or the message that waits to be asked or is described in metadata
  std::size_t descriptors_ = 0;  // of the request
  Time deadline_ = Time::max();
};

}  // namespace weir
