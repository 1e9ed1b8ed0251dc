#include "weir/protocol/grpc/grpc_handler.h"

#include <memory>
#include <utility>

#include "weir/protocol/grpc/grpc_call.h"
#include "weir/protocol/grpc/json_call.h"
#include "weir/wire/http.h"

namespace weir {
namespace {

using Method = GrpcCounters::Method;

struct GrpcMethod {
  std::string_view path;
  GrpcCall::Kind kind;
};
constexpr std::array<GrpcMethod, 3> kGrpcMethods = {{
    {"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", GrpcCall::Kind::should_rate_limit},
    {"/grpc.health.v1.Health/Check", GrpcCall::Kind::check},
    {"/grpc.health.v1.Health/Watch", GrpcCall::Kind::watch},
}};

}  // namespace

void GrpcHandler::begin(http::Exchange& exchange, const RequestHead& head, http::BodyPart first) {
  if (grpc::is_grpc(head.content_type)) return begin_grpc(exchange, head, first);
  if (head.path != "/json") return rest_.begin(exchange, head, first);
  auto call = std::make_unique<JsonCall>(*this);
  JsonCall& attached = *call;
  exchange.attach(std::move(call));
  attached.begin(exchange, head, first);
}

void GrpcHandler::begin_grpc(http::Exchange& exchange, const RequestHead& head, http::BodyPart first) {
  auto kind = GrpcCall::Kind::other;
  for (const GrpcMethod& method : kGrpcMethods) {
    if (method.path == head.path) kind = method.kind;
  }
  auto call = std::make_unique<GrpcCall>(*this, kind, exchange.now().time);
  GrpcCall& attached = *call;
  exchange.attach(std::move(call));
  attached.begin(exchange, head, first);
}

}  // namespace weir
