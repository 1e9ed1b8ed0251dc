// Who may call what. With tokens a caller shows one. Without them, which only a loopback listener may be, every call
// must have a loopback Host: a web page whose name resolves to this machine sends its own (DNS rebinding). A write must
// also have a content type that a page cannot send elsewhere without asking first.
#pragma once

#include <optional>
#include <string_view>

#include "weir/admin/work.h"
#include "weir/config/settings.h"
#include "weir/wire/http1.h"

namespace weir::admin {

enum class Needs : unsigned char { nothing, read, write };

// Nothing: go ahead. Otherwise the refusal: 401 no token or an unknown one, 403 a read token on a write or a foreign
// Host, 415 a write without a content type. `loopback` tells whether the listener can be reached from this machine
// only.
std::optional<Reply> refusal(const RequestHead& head, Needs needs, const config::Admin& tokens, bool loopback);

// "localhost", an address that begins with 127, or "[::1]", with or without a port.
bool is_loopback_host(std::string_view host) noexcept;

}  // namespace weir::admin
