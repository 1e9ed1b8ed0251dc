// Who may call what. With tokens a caller shows one; without them, which only a loopback listener may be, a write must
// prove that no web page made it: browsers send neither this content type nor this Host for a foreign page.
#pragma once

#include <optional>
#include <string_view>

#include "weir/admin/work.h"
#include "weir/policy/settings.h"
#include "weir/wire/http1.h"

namespace weir::admin {

enum class Needs : unsigned char { nothing, read, write };

// Nothing: go ahead. Otherwise the refusal: 401 no token or an unknown one, 403 a read token on a write or a strange
// Host, 415 a write without a content type. `loopback` tells whether the listener can be reached from this machine
// only.
std::optional<Reply> refusal(const RequestHead& head, Needs needs, const policy::Admin& tokens, bool loopback);

// "localhost", an address that begins with 127, or "[::1]", with or without a port.
bool is_loopback_host(std::string_view host) noexcept;

}  // namespace weir::admin
