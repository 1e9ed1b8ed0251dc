#include "weir/proxy/reply.h"

#include <algorithm>

#include "weir/base/text.h"
#include "weir/core/identifier.h"
#include "weir/http/error_reply.h"
#include "weir/protocol/http/answer_json.h"
#include "weir/wire/grpc.h"
#include "weir/wire/http1.h"
#include "weir/wire/json.h"

namespace weir::proxy {
namespace {

constexpr std::string_view kProblemJson = "application/problem+json";
constexpr std::string_view kGrpc = "application/grpc";

// Trailers-only: the status is in the head, and nothing follows.
void respond_grpc(http::Exchange& exchange, int status, std::string_view message, Duration wait, bool pushback,
                  std::string_view lines) {
  std::string all(lines);
  all += "grpc-status: ";
  append_integer(status, all);
  all += "\r\ngrpc-message: ";
  grpc::append_escaped(message, all);
  all += "\r\n";
  if (pushback) {
    all += "grpc-retry-pushback-ms: ";
    append_integer(wait == kNever ? -1 : std::chrono::ceil<std::chrono::milliseconds>(wait).count(), all);
    all += "\r\n";
  }
  exchange.respond({200, kGrpc, {all, {}}, {}}, {{}, true});
}

void write_plain_problem(const Reply& reply, std::string& out) {
  JsonWriter json(out);
  json.begin_object().key("type").string("about:blank").key("title").string(reason_of(reply.status));
  json.key("status").number(std::int64_t{reply.status}).key("detail").string(reply.message);
  json.key("error").string(reply.error).end_object();
}

void write_denial(const Answer& answer, std::string& out) {
  const Verdict& verdict = answer.verdict;
  const bool no_access = answer.access == Access::deny_listed;
  JsonWriter json(out);
  json.begin_object().key("error").string(no_access ? "access denied" : "rate limit exceeded");
  const bool speaks = !verdict.all.empty();
  const bool never = speaks && verdict.speaker().retry_after == kNever;
  json.key("message").string(denial_message(answer));
  if (speaks) {
    const Label& label = answer.labels[verdict.strictest];
    json.key("identifier").string(identifier_of(label));
    if (!label.limit.empty()) json.key("limit").string(label.limit);
    if (!never) {
      json.key("retry_after").number(std::max<std::int64_t>(1, ceil_seconds(verdict.speaker().retry_after).count()));
    }
  }
  json.end_object();
}

}  // namespace

Reply reply_to(const Error& error, int failure_code) {
  const std::string_view word = error.word;
  switch (error.fault) {
    case Fault::invalid:
    case Fault::too_large:
    case Fault::unknown:
      return {400, word.empty() ? "bad_request" : word, error.detail};
    case Fault::timeout:
    case Fault::unavailable:
      return {error.code != 0 ? error.code : failure_code, "store_unavailable",
              "The rate limiter's store is unavailable.", true};
    case Fault::overloaded:
      return {503, "overloaded", "The server is too busy. Please try again later.", true};
    case Fault::internal:
      break;
  }
  return {500, "internal", "The server could not decide about this request."};
}

Reply reply_to(const HttpProblem& problem) {
  std::string sentence(problem.sentence);
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 32);
  return {problem.status, http::code_of(problem.status), sentence + ".", problem.status == 503};
}

Reply reply_to(UpstreamError kind) {
  switch (kind) {
    case UpstreamError::overloaded:
      return {503, "overloaded", "No connection to the backend became free in time.", true};
    case UpstreamError::none_left:
      return {503, "no_backend_left", "No backend answers at the moment.", true};
    case UpstreamError::connect:
      return {502, "backend_unreachable", "The backend cannot be reached."};
    case UpstreamError::timeout:
      return {504, "backend_timeout", "The backend did not respond in time."};
    case UpstreamError::refused:
      return {502, "backend_refused", "The backend of this request is not allowed."};
    case UpstreamError::reset:
      return {502, "bad_backend_answer", "The backend closed the connection without a response."};
    case UpstreamError::bad_answer:
      break;
  }
  return {502, "bad_backend_answer", "The backend's response is not valid HTTP."};
}

int grpc_status_of(int status) noexcept {
  switch (status) {
    case 400:
      return 3;
    case 403:
      return 7;
    case 404:
    case 405:
      return 12;
    case 408:
    case 504:
      return 4;
    case 413:
    case 429:
      return 8;
    case 500:
      return 13;
    default:
      return 14;
  }
}

std::size_t respond(http::Exchange& exchange, const Reply& reply, ReplyForm form, std::string_view lines) {
  if (form.grpc) {
    const bool closed = reply.error == "store_unavailable";  // failClosed looks like a denial
    respond_grpc(exchange, closed ? 8 : grpc_status_of(reply.status), reply.message, std::chrono::seconds{1},
                 closed || reply.retry_soon, lines);
    return 0;
  }
  std::string all(lines);
  if (reply.retry_soon) all += "Retry-After: 1\r\n";
  if (reply.status == 405) all += "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n";
  std::string content;
  if (form.problem) {
    write_plain_problem(reply, content);
  } else {
    http::write_error(reply.error, reply.message, content);
  }
  exchange.respond({reply.status, form.problem ? kProblemJson : http::kJson, {all, {}}, {}}, {content, true});
  return content.size();
}

std::size_t respond_denied(http::Exchange& exchange, const Answer& answer, ReplyForm form, std::string_view lines) {
  const bool no_access = answer.access == Access::deny_listed;
  if (form.grpc) {
    const Duration wait = answer.verdict.all.empty() ? kNever : answer.verdict.speaker().retry_after;
    respond_grpc(exchange, no_access ? 7 : 8, denial_message(answer), wait, !no_access, lines);
    return 0;
  }
  std::string content;
  if (form.problem) {
    write_denial_problem(answer, content);
  } else {
    write_denial(answer, content);
  }
  exchange.respond({no_access ? 403 : 429, form.problem ? kProblemJson : http::kJson, {lines, {}}, {}},
                   {content, true});
  return content.size();
}

}  // namespace weir::proxy
