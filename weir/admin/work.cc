#include "weir/admin/work.h"

#include <chrono>

#include "weir/base/text.h"
#include "weir/http/error_reply.h"
#include "weir/protocol/http/fault_status.h"

namespace weir::admin {

Reply refuse(int status, std::string_view code, std::string_view message) {
  Reply reply;
  reply.status = status;
  http::write_error(code, message, reply.content);
  return reply;
}

Reply refuse(const Error& error) {
  const FaultStatus known = status_of(error.fault);
  // Details of internal errors never leave the process.
  const bool inside = error.fault == Fault::internal;
  const std::string_view message = inside ? std::string_view("internal error") : error.detail;
  return refuse(known.status == 0 ? 503 : known.status, known.code, message);
}

std::string print_end(Wall end) {
  using std::chrono::milliseconds;
  return print_instant(end < Wall::max() - milliseconds{1} ? Wall{std::chrono::ceil<milliseconds>(end)} : end);
}

}  // namespace weir::admin
