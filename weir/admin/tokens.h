// Authorization of admin calls. With tokens, a call must carry one. Without tokens, which only a loopback listener
// allows, every call needs a loopback Host, because a web page whose name resolves to this machine sends its own (DNS
// rebinding). A write also needs a content type that a page cannot send cross-origin without a preflight.
#pragma once

#include <optional>
#include <string_view>

#include "weir/admin/work.h"
#include "weir/config/settings.h"
#include "weir/wire/http1.h"

namespace weir::admin {

enum class Permission : unsigned char {
  none,  // probes
  page,  // the dashboard's files: no token, but without tokens a loopback Host
  read,
  write,
};

// Returns nullopt if the call is allowed, otherwise the refusal: 401 no token or an unknown one, 403 a read token on a
// write or a foreign Host, 415 a write without a content type. `loopback` says whether the listener is reachable from
// this machine only.
std::optional<Reply> refusal(const RequestHead& head, Permission needs, const config::Admin& tokens, bool loopback);

// True for "localhost", an address that starts with 127, and "[::1]", with or without a port.
bool is_loopback_host(std::string_view host) noexcept;

}  // namespace weir::admin
