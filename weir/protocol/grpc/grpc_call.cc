#include "weir/protocol/grpc/grpc_call.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <variant>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/protocol/grpc/rls_messages.h"

namespace weir {

using http::BodyPart;
using http::Exchange;

namespace {

constexpr std::string_view kContentType = "application/grpc";
constexpr std::array<HttpHeader, 1> kOkTrailers = {{{"grpc-status", "0"}}};

}  // namespace

void GrpcCall::begin(Exchange& exchange, const RequestHead& head, BodyPart first) {
  if (head.method != "POST") {
    exchange.discard();
    return fail(exchange, grpc::Status::unimplemented, "a call must be a POST");
  }
  if (kind_ == Kind::other) {
    exchange.discard();
    return fail(exchange, grpc::Status::unimplemented, "there is no method " + quote(head.path));
  }
  const bool open = kind_ != Kind::should_rate_limit;  // health checks need no token
  if (!open && handler_.is_welcome && !handler_.is_welcome(head)) {
    exchange.discard();
    return fail(exchange, grpc::Status::unauthenticated, "a token is needed: x-weir-token, or authorization: Bearer");
  }
  if (const HttpHeader* const timeout = head.headers.find("grpc-timeout")) {
    const std::optional<Duration> time = grpc::parse_timeout(timeout->value);
    if (!time) {
      exchange.discard();
      return fail(exchange, grpc::Status::internal, "grpc-timeout " + quote(timeout->value) + " is no time");
    }
    deadline_ = begun_ + std::min<Duration>(*time, Time::max() - begun_);
    exchange.expire_at(deadline_);
  }
  exchange.proceed();
  body(exchange, first);
}

void GrpcCall::body(Exchange& exchange, BodyPart part) {
  if (!done_) take(exchange, part.bytes, part.last);
  exchange.consumed(part.bytes.size());
}

// A message may arrive in pieces of any size. One that arrives whole is not copied.
void GrpcCall::take(Exchange& exchange, std::string_view bytes, bool last) {
  const bool split = !held_.empty() || !last;
  if (split) held_ += bytes;
  const std::string_view all = split ? std::string_view(held_) : bytes;
  grpc::Message found;
  const grpc::Parsed parsed = grpc::parse(all, bounds::grpc_message_bytes_max, found);
  if (parsed == grpc::Parsed::too_large) {
    exchange.discard();
    return fail(exchange, grpc::Status::resource_exhausted,
                "the message is larger than " + std::to_string(bounds::grpc_message_bytes_max) + " bytes");
  }
  if (parsed == grpc::Parsed::broken) {
    exchange.discard();
    return fail(exchange, grpc::Status::internal, "the prefix of the message is neither 0 nor 1");
  }
  if (parsed == grpc::Parsed::whole && all.size() > grpc::kPrefixBytes + found.bytes.size()) {
    exchange.discard();
    return fail(exchange, grpc::Status::internal, "the call takes one message");
  }
  if (!last) return;
  if (parsed == grpc::Parsed::more) {
    return fail(exchange, grpc::Status::internal, all.empty() ? "the call lacks its message" : "the message is cut");
  }
  if (found.compressed) {
    handler_.fields_ = "grpc-accept-encoding: identity\r\n";
    return fail(exchange, grpc::Status::unimplemented, "messages must not be compressed");
  }
  message(exchange, found.bytes);
}

void GrpcCall::message(Exchange& exchange, std::string_view bytes) {
  if (kind_ == Kind::should_rate_limit) return ask(exchange, bytes);
  tell_health(exchange, bytes);
}

void GrpcCall::ask(Exchange& exchange, std::string_view bytes) {
  Query query;
  if (const auto refusal = rls::read_request(bytes, rls::Syntax::protobuf, exchange.queries(), query)) {
    return fail(exchange, refusal->status, refusal->message);
  }
  descriptors_ = std::get<Descriptors>(query.subject).list.size();
  Query* const asked = exchange.ask();
  if (asked != nullptr) *asked = query;
  // Kept until there is room, or for the response. A view of what is kept already is the message itself.
  if (asked == nullptr || handler_.options.metadata) held_ = std::string(bytes);
}

void GrpcCall::can_ask(Exchange& exchange) {
  if (done_) return;
  const std::string bytes = std::move(held_);
  held_.clear();
  ask(exchange, bytes);
}

void GrpcCall::answered(Exchange& exchange, std::uint32_t, const Result<Answer>& answer) {
  if (done_) return;
  std::string& out = handler_.content_;
  out.clear();
  const std::size_t begun = grpc::begin_message(out);
  if (answer) {
    (void)rls::write_response(*answer, rls::Syntax::protobuf, handler_.options, held_, out);
  } else if (const auto refusal = rls::refusal_of(answer.error())) {
    return fail(exchange, refusal->status, refusal->message);
  } else {
    rls::write_closed(descriptors_, rls::Syntax::protobuf, out);
  }
  grpc::end_message(begun, out);
  handler_.counters_.seconds.add(exchange.now().time - begun_);
  succeed(exchange);
}

void GrpcCall::expired(Exchange& exchange) {
  if (done_) return;
  if (exchange.now().time >= deadline_ || !watching_) {
    if (!watching_) return fail(exchange, grpc::Status::deadline_exceeded, "the time of grpc-timeout is over");
    done_ = true;
    count(grpc::Status::deadline_exceeded);
    constexpr std::array<HttpHeader, 1> kLate = {{{"grpc-status", "4"}}};
    return exchange.write({{}, true, kLate});
  }
  // Polled, so that the code that changes the health does not need to know the watchers.
  if (health() != told_) {
    write_health();
    exchange.write({handler_.content_, false, {}});
  }
  exchange.expire_at(std::min(deadline_, exchange.now().time + bounds::grpc_watch_every));
}

void GrpcCall::refused(Exchange& exchange, const HttpProblem& problem) {
  fail(exchange, problem.status == 408 ? grpc::Status::deadline_exceeded : grpc::Status::internal, problem.sentence);
}

// Ends a watch, which would delay the shutdown. The client can watch the next server instead.
void GrpcCall::draining(Exchange& exchange) {
  if (!watching_ || done_) return;
  done_ = true;
  count(grpc::Status::unavailable);
  constexpr std::array<HttpHeader, 1> kAway = {{{"grpc-status", "14"}}};
  exchange.write({{}, true, kAway});
}

void GrpcCall::ended(Exchange&, http::Ending) {
  if (!done_) count(grpc::Status::canceled);
}

void GrpcCall::tell_health(Exchange& exchange, std::string_view bytes) {
  const std::optional<std::string> service = rls::read_health_request(bytes);
  if (!service) return fail(exchange, grpc::Status::internal, "the message is not a HealthCheckRequest");
  service_known_ = service->empty() || *service == "ratelimit" ||
                   *service == "envoy.service.ratelimit.v3.RateLimitService" || *service == "grpc.health.v1.Health";
  if (!service_known_ && kind_ == Kind::check) {
    return fail(exchange, grpc::Status::not_found, "there is no service " + quote(*service));
  }
  write_health();
  if (kind_ == Kind::check) return succeed(exchange);
  watching_ = true;
  exchange.respond({200, kContentType, {}, {}}, {handler_.content_, false, {}});
  exchange.expire_at(std::min(deadline_, exchange.now().time + bounds::grpc_watch_every));
}

void GrpcCall::write_health() {
  std::string& out = handler_.content_;
  out.clear();
  const std::size_t begun = grpc::begin_message(out);
  told_ = health();
  rls::write_health(told_, out);
  grpc::end_message(begun, out);
}

rls::Health GrpcCall::health() const {
  if (!service_known_) return rls::Health::service_unknown;
  return handler_.serving() ? rls::Health::serving : rls::Health::not_serving;
}

void GrpcCall::succeed(Exchange& exchange) {
  done_ = true;
  count(grpc::Status::ok);
  exchange.respond({200, kContentType, {}, {}}, {handler_.content_, true, kOkTrailers});
}

// Sends a Trailers-Only response: a head without a body.
void GrpcCall::fail(Exchange& exchange, grpc::Status status, std::string_view message) {
  done_ = true;
  count(status);
  std::string& fields = handler_.fields_;
  fields.append("grpc-status: ").append(std::to_string(static_cast<int>(status))).append("\r\n");
  fields.append("grpc-message: ");
  grpc::append_escaped(message, fields);
  fields.append("\r\n");
  exchange.respond({200, kContentType, {fields, {}}, {}}, {{}, true, {}});
  fields.clear();
}

void GrpcCall::count(grpc::Status status) {
  using Method = GrpcCounters::Method;
  auto method = Method::health;
  if (kind_ == Kind::should_rate_limit) method = Method::should_rate_limit;
  if (kind_ == Kind::other) method = Method::other;
  handler_.counters_.record(method, status);
}

}  // namespace weir
