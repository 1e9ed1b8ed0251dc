// Envoy's rate limit service and gRPC's health check, and the same service as JSON (POST /json), on the listener of the
// decision API: what is none of these goes on to the handler behind. Unary calls only, and a watched health.
//
// A call ends with a status in trailers. One that cannot be answered has no message: its head is its trailers.
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
  std::function<bool(const RequestHead& head)> is_welcome;  // a caller shows what it must; empty: everybody is
  std::function<bool()> is_serving;                         // what the health check tells; empty: always

  void begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first) override;
  bool overlaps() const noexcept override { return rest_.overlaps(); }

  // Of exchanges that the handler behind answers: calls of ours have a receiver.
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
