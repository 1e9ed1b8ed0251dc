// One POST /json: a RateLimitRequest as protobuf's JSON, answered 200 or 429 with the response as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/http/exchange.h"
#include "weir/protocol/grpc/grpc_handler.h"
#include "weir/wire/http.h"

namespace weir {

class JsonCall final : public http::Receiver {
 public:
  explicit JsonCall(GrpcHandler& handler) : handler_(handler) {}

  void begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first);

  void body(http::Exchange& exchange, http::BodyPart part) override;
  void answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override;
  void can_ask(http::Exchange& exchange) override;

 private:
  void respond(http::Exchange& exchange, int status, std::string_view content);
  void fail(http::Exchange& exchange, int status, std::string_view message);

  GrpcHandler& handler_;
  std::string content_;          // of the request
  std::size_t descriptors_ = 0;  // of the request
  bool done_ = false;
};

}  // namespace weir
