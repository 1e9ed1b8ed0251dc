// Parses the reply of a limits service and checks every field.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/policy/limits_service.h"

namespace weir::external {

struct ServiceReply {
  ServiceAnswer answer;
  std::optional<Duration> max_age;  // cache_max_age_seconds, if it is above 0
  bool no_store = false;            // cache_no_store

  // An optional field that is invalid and was left out.
  struct Ignored {
    std::string_view field;  // "tenant_key", "failure_policy", "failure_code", "cache_max_age_seconds"
    std::string detail;      // the value and the rule, for the log; a quoted value is shortened
  };
  std::vector<Ignored> ignored;  // in the order of the fields above
};

// The Error's word is the reason, for weir_external_requests_total{result}: bad_body (no JSON object, no message, more
// than bounds::service_reply_bytes_max), bad_average, bad_burst, bad_period (missing or invalid), bad_numbers (together
// they are not a valid limit, or `window_max`, the longest window the store can hold, is too short for them).
//
// JSON: average, burst and period are required; numbers may be decimal strings; unknown members are ignored. `period`
// is a duration ("1s", "1m") or a number of seconds. `failure_policy` ignores case and '_'. A backend_url longer than
// bounds::backend_url_bytes_max becomes a text that is not a URL, so that the proxy refuses it.
Result<ServiceReply> parse_json_reply(std::string_view text, Duration window_max);
// Protobuf: weir.limits.v1.GetLimitsResponse. average may be absent (0) only if burst >= 1 and period are present; an
// empty message is bad_burst.
Result<ServiceReply> parse_protobuf_reply(std::string_view bytes, Duration window_max);

}  // namespace weir::external
