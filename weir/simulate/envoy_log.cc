#include "weir/simulate/envoy_log.h"

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/simulate/log_text.h"
#include "weir/simulate/log_time.h"

namespace weir::simulate {
namespace {

enum EnvoyField : std::size_t {
  kEnvoyPeer,
  kEnvoyMethod,
  kEnvoyPath,
  kEnvoyHost,
  kEnvoyForwarded,
  kEnvoyAgent,
  kEnvoyId
};
constexpr int kWordsBehindRequest = 6;  // status, flags, bytes received and sent, duration, upstream time

}  // namespace

EnvoyLog::EnvoyLog()
    : LogReader(
          {"peer", "method", "path", "host", "header:x-forwarded-for", "header:user-agent", "header:x-request-id"}) {}

Result<void> EnvoyLog::read(std::string_view line, LogLine& out) {
  out.clear();
  if (!line.starts_with('[')) return Error{Fault::invalid, "there is no [time] at the start"};
  LogText text(line.substr(1));
  const Result<Stamp> stamp = read_rfc3339(text.until(']'), Zone());
  if (!stamp) return stamp.error();
  out.time = stamp->time;
  out.resolution = stamp->resolution;
  if (!text.word().empty()) return Error{Fault::invalid, "there is no space after the time"};
  std::string_view request;
  if (!text.quoted(request)) return Error{Fault::invalid, "there is no request in quotes after the time"};
  const Result<RequestLine> asked = read_request_line(request, target_);
  if (!asked) return asked.error();
  out.values[kEnvoyMethod] = asked->method;
  out.values[kEnvoyPath] = asked->target;
  for (int i = 0; i < kWordsBehindRequest; ++i) text.word();
  std::string_view forwarded;
  std::string_view agent;
  std::string_view id;
  std::string_view host;
  if (!text.quoted(forwarded) || !text.quoted(agent) || !text.quoted(id) || !text.quoted(host)) {
    return Error{Fault::invalid, "there are no four quoted fields after the upstream's time"};
  }
  forwarded = trim(present(forwarded));
  const std::size_t comma = forwarded.rfind(',');
  out.values[kEnvoyPeer] = trim(forwarded.substr(comma == std::string_view::npos ? 0 : comma + 1));
  if (comma != std::string_view::npos) out.values[kEnvoyForwarded] = forwarded.substr(0, comma);
  if (!out.values[kEnvoyPeer].empty() && !looks_like_address(out.values[kEnvoyPeer])) {
    return Error{Fault::invalid, "client " + quote(out.values[kEnvoyPeer]) + " is not an address"};
  }
  out.values[kEnvoyAgent] = present(agent);
  out.values[kEnvoyId] = present(id);
  out.values[kEnvoyHost] = present(host);
  return {};
}

}  // namespace weir::simulate
