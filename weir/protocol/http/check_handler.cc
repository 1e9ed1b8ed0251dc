#include "weir/protocol/http/check_handler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/http/error_reply.h"
#include "weir/protocol/bad_request.h"
#include "weir/protocol/http/answer_json.h"
#include "weir/protocol/http/authorize.h"
#include "weir/protocol/http/check_array.h"
#include "weir/protocol/http/check_body.h"
#include "weir/protocol/http/check_route.h"
#include "weir/protocol/http/ratelimit_headers.h"
#include "weir/wire/http1.h"

namespace weir {

using http::Exchange;
using http::kJson;

namespace {

constexpr std::string_view kProblemJson = "application/problem+json";
// Of a store that cannot be asked, where the error does not bring the configured failure_code.
constexpr int kFailureCode = 429;

bool is_json(std::string_view content_type) noexcept {
  const std::string_view type = media_type_of(content_type);
  constexpr std::string_view kSuffix = "+json";
  return same_word(type, kJson) ||
         (type.size() > kSuffix.size() && same_word(type.substr(type.size() - kSuffix.size()), kSuffix));
}

bool is_probe(CheckCall call) noexcept {
  return call == CheckCall::healthz || call == CheckCall::readyz || call == CheckCall::startz;
}

// A cost of 0 only asks, as over RESP: it is no request to count.
bool takes_nothing(const Query& query) noexcept {
  if (const auto* const own = std::get_if<OwnBucket>(&query.subject)) return own->cost == 0;
  if (const auto* const facts = std::get_if<RequestFacts>(&query.subject)) return facts->cost == 0;
  const auto* const named = std::get_if<NamedCharges>(&query.subject);
  return named != nullptr && std::ranges::all_of(named->charges, [](const NamedCharge& one) { return one.cost == 0; });
}

// Who asks: a peer on a UNIX socket is on this machine.
std::string_view caller_address(const Exchange& exchange) noexcept {
  return exchange.peer().empty() ? "127.0.0.1" : exchange.peer();
}

}  // namespace

Count one_cost(const Query& query) noexcept {
  if (const auto* const own = std::get_if<OwnBucket>(&query.subject)) return own->cost;
  if (const auto* const facts = std::get_if<RequestFacts>(&query.subject)) return facts->cost.value_or(0);
  const auto* const named = std::get_if<NamedCharges>(&query.subject);
  return named != nullptr && named->charges.size() == 1 ? named->charges[0].cost : 0;
}

const CheckHandler::Route* CheckHandler::find_route(std::string_view path) noexcept {
  static constexpr std::array<Route, 10> kRoutes = {{
      {"/v1/check", CheckCall::check, Mode::spend, "POST, OPTIONS"},
      {"/v1/throttle", CheckCall::throttle, Mode::spend, "POST, OPTIONS"},
      {"/v1/refund", CheckCall::check, Mode::refund, "POST, OPTIONS"},
      {"/v1/peek", CheckCall::check, Mode::peek, "POST, OPTIONS"},
      {"/v1/reset", CheckCall::check, Mode::reset, "POST, OPTIONS"},
      {"/v1/authorize", CheckCall::authorize, Mode::spend, {}},
      {"/healthz", CheckCall::healthz, Mode::peek, "GET, HEAD, OPTIONS"},
      {"/readyz", CheckCall::readyz, Mode::peek, "GET, HEAD, OPTIONS"},
      {"/startz", CheckCall::startz, Mode::peek, "GET, HEAD, OPTIONS"},
      {"*", CheckCall::any, Mode::peek, "GET, HEAD, POST, OPTIONS"},
  }};
  const auto route = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& r) { return r.path == path; });
  return route == kRoutes.end() ? nullptr : &*route;
}

// --- requests ---

// Refuses a caller who lacks the required token, before anything else is revealed. Returns true if it responded.
bool CheckHandler::refuse_caller(Exchange& exchange, const RequestHead& head) {
  const Route* const route = check_of(exchange).route;
  const bool writes = route != nullptr && (route->mode == Mode::refund || route->mode == Mode::reset);
  switch (caller_of(head, tokens, writes)) {
    case Caller::welcome:
      return false;
    case Caller::unknown:
      write_field("WWW-Authenticate", "Bearer", fields_);
      fail(exchange, {401, "unauthorized", "a token is needed: X-Weir-Token, or Authorization: Bearer"});
      return true;
    case Caller::read_only:
      fail(exchange, {403, "forbidden", std::string(route->path) + " needs the write token"});
      return true;
  }
  return false;
}

// Refuses what the head alone rules out.
bool CheckHandler::refuse(Exchange& exchange, const RequestHead& head) {
  Check& check = check_of(exchange);
  check.route = find_route(head.path);
  check.denied = 429;
  check.explain = !head.query.empty() && query_value(head.query, "explain") == "true";
  check.problem = !head.accept.empty() && accepts_exactly(head.accept, kProblemJson);
  const Route* const route = check.route;
  if (refuse_caller(exchange, head)) return true;
  if (route == nullptr) {
    fail(exchange, {404, "not_found", "there is nothing at " + quote(head.path)});
    return true;
  }
  if (head.method == "OPTIONS" || route->call == CheckCall::authorize) return false;
  const bool probes = is_probe(route->call);
  if (probes ? head.method != "GET" && head.method != "HEAD" : head.method != "POST") {
    write_field("Allow", route->allow, fields_);
    const std::string_view wanted = probes ? " takes GET or HEAD, not " : " takes POST, not ";
    fail(exchange, {405, "method_not_allowed", std::string(route->path).append(wanted) + quote(head.method)});
    return true;
  }
  if (probes) return false;
  // A web page can make a browser send any other type, or none, without asking the server first.
  if (!is_json(head.content_type)) {
    const std::string given =
        head.content_type.empty() ? "and Content-Type must say so" : "not " + quote(head.content_type);
    fail(exchange, {415, "unsupported_media_type", "the content must be application/json, " + given});
    return true;
  }
  if (!head.content_encoding.empty() && !same_word(head.content_encoding, "identity")) {
    fail(exchange,
         {415, "unsupported_media_type", "the content must not be encoded, as " + quote(head.content_encoding)});
    return true;
  }
  return false;
}

void CheckHandler::request(Exchange& exchange, const RequestHead& head, std::string_view content) {
  const Route* const route = check_of(exchange).route;
  if (route->call == CheckCall::authorize) return authorize(exchange, head);
  if (head.method == "OPTIONS") {
    write_field("Allow", route->allow, fields_);
    return respond(exchange, 204);
  }
  if (is_probe(route->call)) return probe(exchange, head);
  const Result<JsonValue> body = json_.read(content);
  if (!body) return fail(exchange, {400, "bad_json", body.error().detail});
  if (body->is(JsonKind::array)) return ask_many(exchange, *body, content);
  ask_one(exchange, *body);
}

void CheckHandler::probe(Exchange& exchange, const RequestHead& head) {
  const auto tell = [&](bool good, std::string_view yes, std::string_view no) {
    respond(exchange, good ? 200 : 503, kJson, good ? yes : no);
  };
  const CheckCall call = check_of(exchange).route->call;
  if (call == CheckCall::healthz) return tell(true, "{\"status\":\"alive\"}\n", {});
  if (call == CheckCall::startz) {
    return tell(health_.started, "{\"status\":\"started\"}\n", "{\"status\":\"starting\"}\n");
  }
  const bool deep = health_.store_up && query_value(head.query, "deep") == "true";
  if (!deep || !health_.ready) {
    return tell(health_.ready, "{\"status\":\"ready\"}\n", "{\"status\":\"not ready\"}\n");
  }
  if (!health_.store_up()) return answer_probe(exchange, false);
  can_ask(exchange);
}

// Only a probe waits for room: every other question is asked with its request, which begins only if there is room.
void CheckHandler::can_ask(Exchange& exchange) {
  if (Query* const query = exchange.ask()) *query = Query{StoreProbe{}};
}

void CheckHandler::answer_probe(Exchange& exchange, bool store_decides) {
  respond(exchange, store_decides ? 200 : 503, kJson,
          store_decides ? "{\"status\":\"ready\"}\n" : "{\"status\":\"store unavailable\"}\n");
}

// --- questions ---

std::optional<ApiError> CheckHandler::decode(JsonValue value, Exchange& exchange, Query& query) const {
  const Route& route = *check_of(exchange).route;
  Queries& queries = exchange.queries();
  const bool throttle = route.call == CheckCall::throttle;
  if (auto error = throttle ? read_throttle(value, queries, query) : read_check(value, queries, query)) return error;
  query.mode = route.mode == Mode::spend && takes_nothing(query) ? Mode::peek : route.mode;
  if (auto* const facts = std::get_if<RequestFacts>(&query.subject)) facts->caller = caller_address(exchange);
  return {};
}

// Ignores the content, which belongs to the request that the proxy asks about.
void CheckHandler::authorize(Exchange& exchange, const RequestHead& head) {
  const std::optional<int> denied = denial_status(head.query);
  if (!denied) return fail(exchange, {400, "bad_value", "deny must be 429 or 403"});
  check_of(exchange).denied = static_cast<std::int16_t>(*denied);
  Query* const query = exchange.ask();
  if (query == nullptr) return fail(exchange, {503, "overloaded", "the server has too much to decide"});
  const std::string_view caller = caller_address(exchange);
  read_authorize(head, caller, exchange.queries(), *query);
  if (auto* const facts = std::get_if<RequestFacts>(&query->subject)) facts->caller = caller;
}

void CheckHandler::ask_one(Exchange& exchange, JsonValue value) {
  Query query;
  if (const auto error = decode(value, exchange, query)) return fail(exchange, *error);
  check_of(exchange).cost = one_cost(query);
  Query* const asked = exchange.ask();
  if (asked == nullptr) return fail(exchange, {503, "overloaded", "the server has too much to decide"});
  *asked = query;
}

void CheckHandler::ask_many(Exchange& exchange, JsonValue array, std::string_view content) {
  std::size_t size = 0;
  for (const JsonValue item : array.items()) {
    (void)item;
    ++size;
  }
  if (size > bounds::http_checks_max) {
    const std::string most = std::to_string(bounds::http_checks_max);
    return fail(exchange, {413, "too_large", "the array has more than " + most + " checks"});
  }
  auto checks = std::make_unique<CheckArray>(*this, size);
  CheckArray& attached = *checks;
  exchange.attach(std::move(checks));
  attached.start(exchange, array, content);
}

// --- answers ---

// Returns the error to respond with, or nullopt if the answer is a decision to report.
std::optional<ApiError> CheckHandler::error_in(const Check& check, Count cost, const Result<Answer>& answer) const {
  if (!answer) {
    const Fault fault = answer.error().fault;
    FaultStatus status = status_of(fault);
    if (status.status == 0) {
      status.status = answer.error().code != 0 ? answer.error().code : kFailureCode;
    }
    // A caller who supplies the numbers has no id that could be bad.
    if (fault == Fault::invalid && check.route->call == CheckCall::throttle) status.code = "bad_value";
    if (!answer.error().word.empty()) status.code = answer.error().word;
    if (fault == Fault::internal) return ApiError{status.status, status.code, "the server failed; its log says why"};
    return ApiError{status.status, status.code, answer.error().detail};
  }
  const Verdict& verdict = answer->verdict;
  if (verdict.allowed || verdict.all.empty() || check.route->mode == Mode::reset) return {};
  const Decision& decision = verdict.speaker();
  // A blocked client also waits forever, with burst 0: that is an ordinary denial.
  if (decision.retry_after != kNever || decision.burst == 0) return {};
  const Label& label = answer->labels[verdict.strictest];
  std::string message = "cost " + std::to_string(cost > 0 ? cost : label.cost) + " can never pass: burst is " +
                        std::to_string(decision.burst);
  if (!label.limit.empty()) message += " in limit " + quote(label.limit);
  return ApiError{400, "cost_exceeds_burst", message};
}

void CheckHandler::answered(Exchange& exchange, std::uint32_t, const Result<Answer>& answer) {
  const Check& check = check_of(exchange);
  const Route& route = *check.route;
  if (route.call == CheckCall::readyz) return answer_probe(exchange, bool(answer));
  if (route.call == CheckCall::authorize && answer) {
    write_rate_headers(*answer, answer->headers, fields_);
    const int denied = answer->access == Access::deny_listed ? 403 : check.denied;
    return respond(exchange, answer->verdict.allowed ? 200 : denied);
  }
  if (auto error = error_in(check, check.cost, answer)) {
    // A proxy that wants 403 for a denial does not understand any other refusal.
    const bool own = !answer && answer.error().fault == Fault::internal;
    if (route.call == CheckCall::authorize && check.denied != 429 && !own) error->status = check.denied;
    return fail(exchange, *error);
  }
  if (route.mode == Mode::reset) return respond(exchange, 204);
  const bool denied = route.mode == Mode::spend && !answer->verdict.allowed;
  const bool no_access = answer->access == Access::deny_listed;
  const int status = !denied ? 200 : no_access ? 403 : 429;
  write_rate_headers(*answer, answer->headers, fields_);
  content_.clear();
  const bool problem = denied && check.problem;
  if (problem) {
    write_denial_problem(*answer, content_);
  } else {
    write_answer(*answer, check.explain, denied || no_access ? Denial::explained : Denial::plain, content_);
  }
  content_ += '\n';
  respond(exchange, status, problem ? kProblemJson : kJson, content_);
}

void CheckHandler::fail(Exchange& exchange, const ApiError& error) {
  if (error.status < 429) log_bad_request(log, exchange.peer(), error.message);
  content_.clear();
  http::write_error(error.code, error.message, content_);
  content_ += '\n';
  // It is unknown how long the failure lasts, so suggest a short wait.
  if (error.status == 429 || error.status == 503) write_field("Retry-After", "1", fields_);
  respond(exchange, error.status, kJson, content_);
}

// Responds with the fields in fields_.
void CheckHandler::respond(Exchange& exchange, int status, std::string_view content_type, std::string_view content) {
  exchange.respond({status, content_type, {fields_, {}}, {}}, {content, true});
  fields_.clear();
}

}  // namespace weir
