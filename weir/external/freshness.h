// How long a service's answer may be used.
#pragma once

#include <span>

#include "weir/base/time.h"
#include "weir/external/reply.h"
#include "weir/wire/http.h"

namespace weir::external {

struct Freshness {
  Duration fresh{};        // zero: only for the requests that wait for it
  bool keep_stale = true;  // whether it may be used afterward while the service fails
};

// First match wins: Cache-Control max-age (even beside no-store), no-cache or no-store (zero), Expires (zero if past or
// unreadable), cache_no_store (zero), cache_max_age_seconds, `cache_ttl`. An answer with no-store in its headers or
// body is never kept as stale. At most bounds::service_ttl_max.
Freshness http_freshness(std::span<const HttpHeader> headers, const ServiceReply& reply, Duration cache_ttl, Wall now);
// cache_no_store (zero), cache_max_age_seconds, `cache_ttl`.
Freshness grpc_freshness(const ServiceReply& reply, Duration cache_ttl);

}  // namespace weir::external
