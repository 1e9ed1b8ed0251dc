// Any reply of a service, in both forms, and any answer that servers share: no crash, a failure has a reason, and what
// is accepted is within the bounds.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/external/freshness.h"
#include "weir/external/http_date.h"
#include "weir/external/reply.h"
#include "weir/external/stored_answer.h"

namespace {

using namespace weir;
using namespace weir::external;

constexpr Now kFuzzNow{Time{} + std::chrono::hours{1}, Wall{std::chrono::seconds{1'790'000'000}}};

void check_reply(const Result<ServiceReply>& reply) {
  if (!reply) {
    WEIR_ASSERT(!reply.error().word.empty() && !reply.error().detail.empty());
    return;
  }
  const ServiceAnswer& answer = reply->answer;
  WEIR_ASSERT(!answer.numbers || answer.numbers->window() <= bounds::redis_window_max);
  WEIR_ASSERT(answer.tenant_key.size() <= bounds::tenant_key_bytes_max);
  WEIR_ASSERT(answer.backend_url.size() <= bounds::backend_url_bytes_max);
  WEIR_ASSERT(!answer.failure_code || (*answer.failure_code >= 400 && *answer.failure_code <= 599));
  WEIR_ASSERT(!reply->max_age || (*reply->max_age > Duration::zero() && *reply->max_age <= bounds::service_ttl_max));
  for (const auto& ignored : reply->ignored) WEIR_ASSERT(!ignored.detail.empty() && ignored.detail.size() < 1024);
}

void check_freshness(std::string_view bytes) {
  const std::size_t half = bytes.size() / 2;
  const HttpHeader headers[] = {{"Cache-Control", bytes.substr(0, half)}, {"Expires", bytes.substr(half)}};
  const Freshness freshness = http_freshness(headers, {}, std::chrono::seconds{60}, kFuzzNow.wall);
  WEIR_ASSERT(freshness.fresh >= Duration::zero() && freshness.fresh <= bounds::service_ttl_max);
  if (const auto date = parse_http_date(bytes)) WEIR_ASSERT(*date >= Wall{});
}

void check_stored(std::string_view text) {
  const auto stored =
      parse_stored_answer({text, "limit", "s", std::chrono::seconds{9}, false}, bounds::redis_window_max, kFuzzNow);
  if (!stored) return;
  const std::string printed = print_stored_answer("limit", *stored, kFuzzNow);
  const auto again =
      parse_stored_answer({printed, "limit", "s", std::chrono::seconds{9}, false}, bounds::redis_window_max, kFuzzNow);
  WEIR_ASSERT(again && again->numbers == stored->numbers && again->tenant_key == stored->tenant_key &&
              again->backend_url == stored->backend_url && again->failure_code == stored->failure_code &&
              again->failure_policy == stored->failure_policy && again->stale_until == stored->stale_until);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_reply(parse_json_reply(bytes, bounds::redis_window_max));
  check_reply(parse_protobuf_reply(bytes, bounds::redis_window_max));
  check_freshness(bytes);
  check_stored(bytes);
  return 0;
}
