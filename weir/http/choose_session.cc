#include "weir/http/choose_session.h"

#include <memory>

#include "weir/http/http1_session.h"
#include "weir/http/http2_session.h"

namespace weir::http {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";  // RFC 9113 §3.4

}  // namespace

SessionChoice choose_session(const NewConnection& connection) noexcept {
  if (connection.application_protocol == kHttp2Alpn) return SessionChoice::http2;
  if (connection.tls) return SessionChoice::http1;
  const std::string_view bytes = connection.first_bytes.substr(0, kPreface.size());
  if (bytes == kPreface) return SessionChoice::http2;
  if (connection.complete) return SessionChoice::http1;  // which answers that the request is incomplete
  return kPreface.starts_with(bytes) ? SessionChoice::wait : SessionChoice::http1;
}

Sessions http_sessions(HttpShared& shared, Handler& handler) {
  return [&shared, &handler](const NewConnection& connection) -> std::unique_ptr<Session> {
    switch (choose_session(connection)) {
      case SessionChoice::http1:
        return std::make_unique<Http1Session>(shared, handler, connection);
      case SessionChoice::http2:
        return std::make_unique<Http2Session>(shared, handler, connection);
      case SessionChoice::wait:
        break;
    }
    return nullptr;
  };
}

}  // namespace weir::http
