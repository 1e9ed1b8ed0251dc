#include "weir/http/error_reply.h"

#include "weir/http/exchange.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/bad_request.h"
#include "weir/wire/json.h"

namespace weir::http {

std::string_view code_of(int status) noexcept {
  switch (status) {
    case 405:
      return "method_not_allowed";
    case 408:
      return "request_timeout";
    case 413:
      return "too_large";
    case 414:
      return "uri_too_long";
    case 417:
      return "expectation_failed";
    case 431:
      return "header_too_large";
    case 501:
      return "not_implemented";
    case 502:
      return "bad_gateway";
    case 503:
      return "overloaded";
    case 504:
      return "gateway_timeout";
    case 505:
      return "version_not_supported";
    default:
      return "bad_request";
  }
}

void write_error(std::string_view code, std::string_view message, std::string& out) {
  JsonWriter(out).begin_object().key("error").string(code).key("message").string(message).end_object();
}

void write_problem(const HttpProblem& problem, std::string& out) {
  write_error(code_of(problem.status), problem.sentence, out);
  out += '\n';
}

void respond_problem(Exchange& exchange, const HttpProblem& problem) {
  std::string content;
  write_problem(problem, content);
  HttpFields fields;
  if (problem.status == 503) fields.lines = "Retry-After: 1\r\n";
  if (problem.status == 405) fields.lines = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n";  // to CONNECT
  exchange.respond({problem.status, kJson, fields, {}}, {content, true});
}

}  // namespace weir::http
