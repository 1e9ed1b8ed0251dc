#include "weir/external/reply_fields.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::external {
namespace {

bool is_tenant_key(std::string_view text) noexcept {
  return text.size() <= bounds::tenant_key_bytes_max && std::ranges::all_of(text, [](char c) {
           return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == ':' || c == '-';
         });
}

struct PolicyWord {
  std::string_view word;  // in lower case, without '_'
  std::optional<FailurePolicy> policy;
};
// The longer ones are protobuf's names of the enumerators, which its JSON form has.
constexpr std::array kPolicyWords{
    PolicyWord{"passthrough", FailurePolicy::pass_through},
    PolicyWord{"failclosed", FailurePolicy::fail_closed},
    PolicyWord{"inmemoryfallback", FailurePolicy::in_memory_fallback},
    PolicyWord{"failurepolicypassthrough", FailurePolicy::pass_through},
    PolicyWord{"failurepolicyfailclosed", FailurePolicy::fail_closed},
    PolicyWord{"failurepolicyinmemoryfallback", FailurePolicy::in_memory_fallback},
    PolicyWord{"failurepolicyunspecified", std::nullopt},
};

}  // namespace

Error bad_reply(std::string_view word, std::string detail) {
  return {Fault::invalid, std::move(detail), 0, word};
}

Result<void> take_numbers(Count average, Count burst, Duration period, Duration window_max, ServiceAnswer& answer) {
  if (average < 0) return bad_reply("bad_average", "average " + std::to_string(average) + " must be 0 or more");
  if (burst < 1) return bad_reply("bad_burst", "burst " + std::to_string(burst) + " must be at least 1");
  if (period <= Duration::zero()) return bad_reply("bad_period", "period must be longer than zero");
  answer.numbers.reset();
  if (average == 0) return {};
  const Result<Limit> limit = Limit::make(average, period, burst);
  if (!limit) return bad_reply("bad_numbers", limit.error().detail);
  if (limit->window() > window_max) {
    return bad_reply("bad_numbers", "burst " + std::to_string(burst) + " would take " +
                                        print_duration(limit->window()) + " to refill; the store can hold at most " +
                                        print_duration(window_max));
  }
  answer.numbers = *limit;
  return {};
}

void ignore_field(std::string_view field, std::string detail, ServiceReply& reply) {
  reply.ignored.push_back({field, std::move(detail)});
}

void take_tenant_key(std::string_view text, ServiceReply& reply) {
  reply.answer.tenant_key.clear();
  if (text.empty()) return;
  if (is_tenant_key(text)) {
    reply.answer.tenant_key = text;
    return;
  }
  ignore_field("tenant_key", "tenant_key " + quote(text) + " must be 1 to 256 of A-Z a-z 0-9 _ . : -", reply);
}

void take_failure_policy(std::string_view word, ServiceReply& reply) {
  reply.answer.failure_policy.reset();
  if (word.empty()) return;
  std::string plain;
  for (const char c : word) {
    if (c != '_') plain += to_lower(c);
  }
  const auto* const known = std::ranges::find(kPolicyWords, plain, &PolicyWord::word);
  if (known != kPolicyWords.end()) {
    reply.answer.failure_policy = known->policy;
    return;
  }
  ignore_field("failure_policy",
               "failure_policy " + quote(word) + " must be passThrough, failClosed or inMemoryFallback", reply);
}

void take_failure_code(std::int64_t code, ServiceReply& reply) {
  reply.answer.failure_code.reset();
  if (code == 0) return;
  if (code >= 400 && code <= 599) {
    reply.answer.failure_code = static_cast<int>(code);
    return;
  }
  ignore_field("failure_code", "failure_code " + std::to_string(code) + " must be 400 to 599", reply);
}

void take_max_age(std::int64_t seconds, ServiceReply& reply) {
  reply.max_age.reset();
  if (seconds < 0) {
    return ignore_field("cache_max_age_seconds",
                        "cache_max_age_seconds " + std::to_string(seconds) + " must not be negative", reply);
  }
  if (seconds == 0) return;
  constexpr auto kMost = std::chrono::duration_cast<std::chrono::seconds>(bounds::service_ttl_max);
  reply.max_age = std::min(std::chrono::seconds{seconds}, kMost);
}

void take_backend_url(std::string_view url, ServiceReply& reply) {
  reply.answer.backend_url = url.size() <= bounds::backend_url_bytes_max ? url : kUnusableUrl;
}

}  // namespace weir::external
