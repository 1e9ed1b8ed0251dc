// Which fields of a head cross the proxy, and which it adds. Heads are rebuilt from their parsed form, so nothing that
// was not understood is passed on.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/inline_list.h"
#include "weir/wire/http.h"

namespace weir::proxy {

using FieldList = InlineList<HttpHeader, bounds::http_headers_max>;

// Appends the fields of a request that remain: without hop-by-hop fields (RFC 9110 §7.6.1), those that Connection
// names, and Host, Expect and framing fields, which the call writes itself. From a peer that is not trusted also
// without X-Forwarded-*, X-Real-IP and Forwarded, however they spell '-'. Keys of limits are read from the result, so
// it also drops other spellings of the fields in `decisive` ("x_api-key"): some backends take '_' for '-' (RFC 3875
// §4.1.18). Names in `decisive` are in lower case.
void keep_request_fields(const RequestHead& head, bool trusted, std::span<const std::string> decisive, FieldList& out);

// What the proxy tells a backend about the client.
struct ClientFacts {
  std::string_view peer;  // its address; empty: a UNIX socket
  std::string_view scheme;
  std::string_view host;
  std::string_view request_id;
};

// Appends the kept fields as lines, with X-Forwarded-For, -Proto and -Host and X-Request-Id. X-Forwarded-For is
// appended to; the others are kept if they are there.
void write_request_fields(std::span<const HttpHeader> kept, const ClientFacts& facts, std::string& out);

// Appends the fields of a backend's response that remain, as lines: without hop-by-hop fields, Content-Length and
// X-Request-Id, and without its rate headers where Weir has its own.
void write_response_fields(const ResponseHead& head, bool has_rate_headers, std::string& out);

// The values of the Connection fields of a head: what they name must not cross among the trailers either (RFC 9110
// §7.6.1).
std::string connection_options(std::span<const HttpHeader> headers);

// The trailer fields that cross, in either direction: without those that would not cross in the head, and without all
// that say who the client is. `options`: connection_options() of the head.
std::vector<HttpHeader> keep_trailers(std::span<const HttpHeader> trailers, std::string_view options,
                                      bool has_rate_headers);

// The client's X-Request-Id if it is 1..128 of [A-Za-z0-9._:-]; empty otherwise.
std::string_view usable_request_id(const RequestHead& head) noexcept;

// Whether TE lists trailers.
bool takes_trailers(const RequestHead& head) noexcept;

// The host that the request is for. That of an absolute target replaces Host.
std::string_view host_of(const RequestHead& head) noexcept;

// The target in the form for a server: path and query of the original bytes; "*" for the whole server.
std::string_view origin_form(std::string_view method, std::string_view target) noexcept;

}  // namespace weir::proxy
