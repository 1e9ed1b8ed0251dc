#include "weir/simulate/combined_log.h"

#include "weir/base/text.h"
#include "weir/simulate/log_text.h"

namespace weir::simulate {
namespace {

enum CombinedField : std::size_t { kPeer, kMethod, kPath, kHost, kReferer, kAgent, kForwardedFor };

}  // namespace

CombinedLog::CombinedLog()
    : LogReader({"peer", "method", "path", "host", "header:referer", "header:user-agent", "header:x-forwarded-for"}) {}

Result<void> CombinedLog::read(std::string_view line, LogLine& out) {
  out.clear();
  LogText text(line);
  std::string_view peer = text.word();
  if (!looks_like_address(peer)) {
    out.values[kHost] = peer;  // vhost_combined
    peer = text.word();
    if (!looks_like_address(peer)) return Error{Fault::invalid, "client " + quote(peer) + " is not an address"};
  }
  out.values[kPeer] = peer;
  text.until('[');
  const Result<Stamp> stamp = time_.read(text.until(']'));
  if (!stamp) return stamp.error();
  out.time = stamp->time;
  out.resolution = stamp->resolution;
  if (!text.word().empty()) return Error{Fault::invalid, "there is no space after the time"};
  std::string_view request;
  if (!text.quoted(request)) return Error{Fault::invalid, "there is no request in quotes after the time"};
  const Result<RequestLine> asked = read_request_line(request, target_);
  if (!asked) return asked.error();
  out.values[kMethod] = asked->method;
  out.values[kPath] = asked->target;
  if (!asked->host.empty()) out.values[kHost] = asked->host;
  const std::string_view status = text.word();
  if (status.size() != 3 || status.find_first_not_of("0123456789") != std::string_view::npos) {
    return Error{Fault::invalid, "status " + quote(status) + " is not a number of three digits"};
  }
  text.word();  // the bytes sent
  for (const std::size_t field : {kReferer, kAgent, kForwardedFor}) {
    std::string_view value;
    if (!text.quoted(value)) break;
    out.values[field] = present(value);
  }
  return {};
}

}  // namespace weir::simulate
