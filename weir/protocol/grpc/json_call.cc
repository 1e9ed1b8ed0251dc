#include "weir/protocol/grpc/json_call.h"

#include <optional>
#include <variant>

#include "weir/base/bounds.h"
#include "weir/http/error_reply.h"
#include "weir/protocol/grpc/rls_messages.h"

namespace weir {

using http::BodyPart;
using http::Exchange;

void JsonCall::begin(Exchange& exchange, const RequestHead& head, BodyPart first) {
  if (head.method != "POST") {
    exchange.discard();
    handler_.fields_ = "Allow: POST\r\n";
    return fail(exchange, 405, "/json takes POST");
  }
  if (handler_.is_welcome && !handler_.is_welcome(head)) {
    exchange.discard();
    handler_.fields_ = "WWW-Authenticate: Bearer\r\n";
    return fail(exchange, 401, "a token is needed: X-Weir-Token, or Authorization: Bearer");
  }
  exchange.proceed();
  body(exchange, first);
}

void JsonCall::body(Exchange& exchange, BodyPart part) {
  exchange.consumed(part.bytes.size());
  if (done_) return;
  if (part.bytes.size() > bounds::grpc_message_bytes_max - content_.size()) {
    exchange.discard();
    return fail(exchange, 413,
                "the content is larger than " + std::to_string(bounds::grpc_message_bytes_max) + " bytes");
  }
  content_ += part.bytes;
  if (part.last) can_ask(exchange);
}

void JsonCall::can_ask(Exchange& exchange) {
  if (done_) return;
  Query query;
  if (const auto refusal = rls::read_request(content_, rls::Syntax::json, exchange.queries(), query)) {
    return fail(exchange, 400, refusal->message);
  }
  descriptors_ = std::get<Descriptors>(query.subject).list.size();
  if (Query* const asked = exchange.ask()) *asked = query;
}

void JsonCall::answered(Exchange& exchange, std::uint32_t, const Result<Answer>& answer) {
  if (done_) return;
  std::string& out = handler_.content_;
  out.clear();
  if (answer) {
    const rls::Options options{handler_.options.headers, false};
    const bool allowed = rls::write_response(*answer, rls::Syntax::json, options, {}, out);
    return respond(exchange, allowed ? 200 : 429, out);
  }
  if (const auto refusal = rls::refusal_of(answer.error())) {
    const bool busy = refusal->status == grpc::Status::unavailable;
    const bool ours = refusal->status == grpc::Status::internal;
    return fail(exchange, busy ? 503 : ours ? 500 : 400, refusal->message);
  }
  rls::write_closed(descriptors_, rls::Syntax::json, out);
  respond(exchange, 429, out);
}

void JsonCall::respond(Exchange& exchange, int status, std::string_view content) {
  done_ = true;
  exchange.respond({status, http::kJson, {handler_.fields_, {}}, {}}, {content, true, {}});
  handler_.fields_.clear();
}

void JsonCall::fail(Exchange& exchange, int status, std::string_view message) {
  std::string& out = handler_.content_;
  out.clear();
  std::string_view code = "bad_request";
  if (status == 401) code = "unauthorized";
  if (status == 405) code = "method_not_allowed";
  if (status == 413) code = "too_large";
  if (status == 500) code = "internal";
  if (status == 503) code = "overloaded";
  http::write_error(code, message, out);
  out += '\n';
  respond(exchange, status, out);
}

}  // namespace weir
