#include "weir/admin/admin_handler.h"

#include <memory>
#include <utility>
#include <variant>

#include "weir/admin/event_stream.h"
#include "weir/admin/work_receiver.h"
#include "weir/base/text.h"
#include "weir/wire/http1.h"

namespace weir::admin {
namespace {

void respond(http::Exchange& exchange, Reply& reply) {
  // JSON ends with a newline, so that a terminal's prompt starts on its own line.
  if (!reply.content.empty() && reply.content_type.ends_with("json")) reply.content += '\n';
  exchange.respond({reply.status, reply.content_type, {reply.fields, {}}, {}}, {reply.content, true});
}

}  // namespace

// The refusal, if the head alone is enough to refuse the request.
std::optional<Reply> AdminHandler::refusal_of(const RequestHead& head, const RouteMatch& found) const {
  if (head.method == "OPTIONS" && (!found.allow.empty() || head.path == "*")) return {};
  if (found.allow.empty()) return admin::refuse(404, "not_found", "there is nothing at " + quote(head.path));
  if (found.route == nullptr) {
    Reply reply = admin::refuse(405, "method_not_allowed",
                                quote(head.path) + " takes " + found.allow + ", not " + quote(head.method));
    write_field("Allow", found.allow, reply.fields);
    return reply;
  }
  return refusal(head, found.route->needs, shared_.reloader.current()->settings.admin, shared_.loopback);
}

bool AdminHandler::refuse(http::Exchange& exchange, const RequestHead& head) {
  std::optional<Reply> refused = refusal_of(head, find_route(head.method, head.path));
  if (!refused) return false;
  respond(exchange, *refused);
  return true;
}

Outcome AdminHandler::call(const RouteMatch& found, const RequestHead& head, std::string_view content,
                           std::string_view peer) {
  if (head.method == "OPTIONS") {
    Reply reply{204, {}, {}, {}};
    write_field("Allow", found.allow.empty() ? "GET, HEAD, POST, PUT, DELETE, OPTIONS" : found.allow, reply.fields);
    return reply;
  }
  if (found.bad_escape) return admin::refuse(400, "bad_value", "the path has an invalid escape; write '%' as %25");
  Request request;
  request.method = head.method;
  request.parts = found.parts;
  request.query = head.query;
  request.content_type = media_type_of(head.content_type);
  request.content = content;
  request.peer = peer;
  request.now = shared_.clock.now();
  if (!found.route->any_parameters) {
    auto parameters = Parameters::read(head.query, found.route->parameters);
    if (!parameters) {
      const bool unknown = parameters.error().fault == Fault::unknown;
      return admin::refuse(400, unknown ? "unknown_field" : "bad_value", parameters.error().detail);
    }
    request.parameters = std::move(*parameters);
  }
  return found.route->call(shared_, request);
}

void AdminHandler::request(http::Exchange& exchange, const RequestHead& head, std::string_view content) {
  finish(exchange, call(find_route(head.method, head.path), head, content, exchange.peer()));
}

void AdminHandler::finish(http::Exchange& exchange, Outcome outcome) {
  if (auto* const reply = std::get_if<Reply>(&outcome)) return respond(exchange, *reply);
  if (auto* const stream = std::get_if<Stream>(&outcome)) {
    auto receiver = std::make_unique<EventStream>(std::move(stream->queue));
    EventStream& attached = *receiver;
    exchange.attach(std::move(receiver));
    return attached.start(exchange);
  }
  auto receiver =
      std::make_unique<WorkReceiver>(*this, shared_.clock, std::move(std::get<std::unique_ptr<Work>>(outcome)));
  WorkReceiver& attached = *receiver;
  exchange.attach(std::move(receiver));
  attached.start(exchange);
}

}  // namespace weir::admin
