// Envoy's rate limit service, the same service as JSON (POST /json), and gRPC's health check, on the listener of the
// decision API. Passes all other requests to the next handler. Unary calls only, plus the health Watch.
//
// A call ends with a status in trailers. A call that cannot be answered has no message: its head carries the status
// (Trailers-Only).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "weir/http/handler.h"
#include "weir/observe/metrics.h"
#include "weir/protocol/grpc/rls_messages.h"
#include "weir/wire/grpc.h"

namespace weir {

class GrpcHandler final : public http::Handler {
 public:
  // Both outlive the handler.
  GrpcHandler(http::Handler& rest, GrpcCounters& counters) : rest_(rest), counters_(counters) {}

  // The owner replaces these between two calls.
  rls::Options options;
  std::function<bool(const RequestHead& head)> is_welcome;  // the caller has the required token; empty: all are welcome
  std::function<bool()> is_serving;                         // what the health check reports; empty: always

  void begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first) override;
  bool overlaps() const noexcept override { return rest_.overlaps(); }

  // For exchanges that the next handler answers: our own calls have a receiver.
  void body(http::Exchange& exchange, http::BodyPart part) override { rest_.body(exchange, part); }
  void answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override {
    rest_.answered(exchange, question, answer);
  }
  void can_ask(http::Exchange& exchange) override { rest_.can_ask(exchange); }
  void expired(http::Exchange& exchange) override { rest_.expired(exchange); }
  void drained(http::Exchange& exchange, std::size_t bytes) override { rest_.drained(exchange, bytes); }
  void ended(http::Exchange& exchange, http::Ending ending) override { rest_.ended(exchange, ending); }

 private:
  friend class GrpcCall;
  friend class JsonCall;

  void begin_grpc(http::Exchange& exchange, const RequestHead& head, http::BodyPart first);
  bool serving() const { return !is_serving || is_serving(); }

  http::Handler& rest_;
  GrpcCounters& counters_;
  // Scratch: nothing in them survives a call.
  std::string fields_;
  std::string content_;
};

}  // namespace weir
