#include "weir/simulate/haproxy_log.h"

#include <charconv>

#include "weir/base/text.h"
#include "weir/simulate/log_text.h"

namespace weir::simulate {
namespace {

enum HaproxyField : std::size_t { kHaproxyPeer, kHaproxyMethod, kHaproxyPath, kHaproxyHost, kHaproxyFixed };
constexpr std::string_view kCapture = "capture.";

// "capture.2" is 1; nullopt if it is not a capture.
std::optional<std::size_t> capture_of(std::string_view member) noexcept {
  if (!member.starts_with(kCapture)) return std::nullopt;
  std::size_t number = 0;
  const std::from_chars_result read =
      std::from_chars(member.data() + kCapture.size(), member.data() + member.size(), number);
  if (read.ec != std::errc() || read.ptr != member.data() + member.size() || number == 0) return std::nullopt;
  return number - 1;
}

std::vector<std::string> haproxy_fields(const ReaderOptions& options) {
  std::vector<std::string> fields{"peer", "method", "path", "host"};
  for (const FieldName& name : options.fields) {
    if (capture_of(name.member) && fields.size() < bounds::log_fields_max) fields.push_back(name.field);
  }
  return fields;
}

}  // namespace

HaproxyLog::HaproxyLog(const ReaderOptions& options) : LogReader(haproxy_fields(options)), time_(options.zone) {
  for (const FieldName& name : options.fields) {
    const std::optional<std::size_t> capture = capture_of(name.member);
    if (capture && captures_.size() + kHaproxyFixed < fields().size()) captures_.push_back(*capture);
  }
}

Result<void> HaproxyLog::read(std::string_view line, LogLine& out) {
  out.clear();
  const std::size_t bracket = line.find(" [");
  // The process id that syslog adds is also in brackets, but not after a space.
  if (bracket == std::string_view::npos) return Error{Fault::invalid, "there is no [time]"};
  const std::string_view before = line.substr(0, bracket);
  const std::size_t space = before.rfind(' ');
  const std::string_view peer = without_port(before.substr(space == std::string_view::npos ? 0 : space + 1));
  if (!looks_like_address(peer)) return Error{Fault::invalid, "client " + quote(peer) + " is not ADDRESS:PORT"};
  out.values[kHaproxyPeer] = peer;
  LogText text(line.substr(bracket + 2));
  const Result<Stamp> stamp = time_.read(text.until(']'));
  if (!stamp) return stamp.error();
  out.time = stamp->time;
  out.resolution = stamp->resolution;
  const std::size_t quote_at = text.rest().find(" \"");
  if (quote_at == std::string_view::npos) return Error{Fault::invalid, "there is no request in quotes at the end"};
  LogText request(text.rest().substr(quote_at + 1));
  std::string_view asked_text;
  if (!request.quoted(asked_text)) return Error{Fault::invalid, "there is no request in quotes at the end"};
  const Result<RequestLine> asked = read_request_line(asked_text, target_);
  if (!asked) return asked.error();
  out.values[kHaproxyMethod] = asked->method;
  out.values[kHaproxyPath] = asked->target;
  out.values[kHaproxyHost] = asked->host;
  if (captures_.empty()) return {};
  LogText captured(text.rest().substr(0, quote_at));
  captured.until('{');
  std::string_view all = captured.until('}');
  for (std::size_t i = 0; !all.empty(); ++i) {
    LogText cut(all);
    const std::string_view value = cut.until('|');
    for (std::size_t field = 0; field < captures_.size(); ++field) {
      if (captures_[field] == i) out.values[kHaproxyFixed + field] = present(value);
    }
    all = cut.rest();
  }
  return {};
}

}  // namespace weir::simulate
