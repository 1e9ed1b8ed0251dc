// /v1/authorize: a proxy asks whether a request may pass, and describes that request in headers.
#pragma once

#include <optional>
#include <string_view>

#include "weir/core/query.h"
#include "weir/protocol/session.h"
#include "weir/wire/http1.h"

namespace weir {

// Takes the method from X-Forwarded-Method, else X-Original-Method; the target from X-Forwarded-Uri, else
// X-Original-URI; the host from X-Forwarded-Host; whatever is absent, from the call itself. The proxy must set or clear
// these: the client could have sent them. All headers are passed on, for keys and routes. `peer` is the caller; the
// policy uses it to decide whether to trust X-Forwarded-For. What the query points to is kept in `queries`.
void read_authorize(const RequestHead& head, std::string_view peer, Queries& queries, Query& query);

// Returns the status of a denial from `?deny=`: 429 (default) or 403; nullopt if it asks for another one.
std::optional<int> denial_status(std::string_view query) noexcept;

}  // namespace weir
