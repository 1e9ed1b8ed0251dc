// The responses that the proxy makes itself: `{"error","message"}`, an RFC 9457 problem if the client accepts exactly
// that, or a gRPC status for a gRPC request.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/core/answer.h"
#include "weir/http/exchange.h"
#include "weir/observe/proxy_metrics.h"
#include "weir/wire/http.h"

namespace weir::proxy {

// The error formats that the client of a request understands.
struct ReplyForm {
  bool grpc = false;
  bool problem = false;
};

struct Reply {
  int status = 502;
  std::string_view error;  // has static storage duration
  std::string message;
  bool retry_soon = false;  // Retry-After: 1
};

// The reply when a question has no answer. `failure_code` is the status that failClosed returns.
Reply reply_to(const Error& error, int failure_code);

// The reply to a request that cannot be read.
Reply reply_to(const HttpProblem& problem);

// The reply when no backend responded.
Reply reply_to(UpstreamError kind);

// The gRPC status that corresponds to an HTTP status.
int grpc_status_of(int status) noexcept;

// Sends the reply. `lines`: more fields (rate headers, error headers, the request's id). Returns how many bytes of
// content there are.
std::size_t respond(http::Exchange& exchange, const Reply& reply, ReplyForm form, std::string_view lines);
// Responds to a request that a list or a limit denied: 403 or 429. `lines` has Retry-After where one helps.
std::size_t respond_denied(http::Exchange& exchange, const Answer& answer, ReplyForm form, std::string_view lines);

}  // namespace weir::proxy
