// The rules for the fields of a reply, the same for JSON and protobuf. Used only by the parsers.
#pragma once

#include <cstdint>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/limit.h"
#include "weir/external/reply.h"

namespace weir::external {

// The Error that makes the whole reply a failure. `word` has static storage duration.
Error bad_reply(std::string_view word, std::string detail);

// Sets the numbers. Errors as parse_json_reply() describes them.
Result<void> take_numbers(Count average, Count burst, Duration period, Duration window_max, ServiceAnswer& answer);

// Each sets one optional field. An empty text and 0 mean that the field is absent; an invalid value is left out and
// noted in `reply.ignored`.
void take_tenant_key(std::string_view text, ServiceReply& reply);
void take_failure_policy(std::string_view word, ServiceReply& reply);
void take_failure_code(std::int64_t code, ServiceReply& reply);
void take_max_age(std::int64_t seconds, ServiceReply& reply);
void take_backend_url(std::string_view url, ServiceReply& reply);

// `field` has static storage duration.
void ignore_field(std::string_view field, std::string detail, ServiceReply& reply);

// Not a URL, so that the proxy refuses the request instead of sending it to another backend.
inline constexpr std::string_view kUnusableUrl = "(unusable backend_url)";

}  // namespace weir::external
