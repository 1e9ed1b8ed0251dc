// What a proxy asks with /v1/authorize: may the request that I have here pass? The request is told by headers.
#pragma once

#include <optional>
#include <string_view>

#include "weir/core/query.h"
#include "weir/protocol/session.h"
#include "weir/wire/http1.h"

namespace weir {

// The method from X-Forwarded-Method, else X-Original-Method; the target from X-Forwarded-Uri, else X-Original-URI; the
// host from X-Forwarded-Host; what is absent, from the call itself. The proxy must set or clear these: the client could
// have sent them. All headers go along, for keys and routes. `peer` is who calls: the policy decides by it whether
// X-Forwarded-For is believed. What the query points to is kept in `queries`.
void read_authorize(const RequestHead& head, std::string_view peer, Queries& queries, Query& query);

// `?deny=`: the status of a denial, 429 or 403. Nothing: another one was asked for.
std::optional<int> denial_status(std::string_view query) noexcept;

}  // namespace weir
