// Chooses the HTTP version of a connection: by ALPN (RFC 7301) under TLS, by its first bytes without TLS. Ignores
// `Upgrade: h2c`, which RFC 9113 §3.1 removed.
#pragma once

#include <string_view>

#include "weir/http/handler.h"
#include "weir/http/http_shared.h"
#include "weir/protocol/session.h"

namespace weir::http {

// What a listener with TLS offers by ALPN, preferred first.
inline constexpr std::string_view kHttp2Alpn = "h2";
inline constexpr std::string_view kHttp1Alpn = "http/1.1";

enum class SessionChoice : unsigned char { wait, http1, http2 };

// `wait`: the bytes so far could be the beginning of either.
SessionChoice choose_session(const NewConnection& connection) noexcept;

// Creates the sessions of connections that `handler` serves. Both arguments outlive them.
Sessions http_sessions(HttpShared& shared, Handler& handler);

}  // namespace weir::http
