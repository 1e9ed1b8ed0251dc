#include "weir/external/freshness.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/external/http_date.h"

namespace weir::external {
namespace {

// What all Cache-Control fields of a response say together.
struct CacheControl {
  std::optional<Duration> max_age;
  bool no_cache = false;
  bool no_store = false;
};

constexpr std::int64_t kSecondsMax = std::chrono::duration_cast<std::chrono::seconds>(bounds::service_ttl_max).count();

// RFC 9111 §1.2.2: a number that does not fit is the largest one. §4.2.1: a value that is no number is stale.
Duration delta_seconds(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return Duration::zero();
  std::int64_t seconds = 0;
  for (const char c : text) seconds = std::min(seconds * 10 + (c - '0'), kSecondsMax);
  return std::chrono::seconds{seconds};
}

void take_directive(std::string_view directive, CacheControl& out) {
  const std::size_t equals = std::min(directive.find('='), directive.size());
  const std::string_view name = trim(directive.substr(0, equals));
  if (equals_ignoring_case(name, "no-store")) out.no_store = true;
  if (equals_ignoring_case(name, "no-cache")) out.no_cache = true;
  if (!equals_ignoring_case(name, "max-age") || out.max_age) return;  // of several the first counts
  const bool has_value = equals < directive.size();
  out.max_age = has_value ? delta_seconds(trim(directive.substr(equals + 1))) : Duration::zero();
}

// Directives are separated by commas; those in a quoted value ("no-cache="a, b"") separate nothing.
void take_field(std::string_view value, CacheControl& out) {
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= value.size(); ++i) {
    if (i < value.size() && value[i] == '"') quoted = !quoted;
    if (i < value.size() && (quoted || value[i] != ',')) continue;
    take_directive(value.substr(begin, i - begin), out);
    begin = i + 1;
  }
}

Freshness by_body(const ServiceReply& reply, Duration cache_ttl, bool keep_stale) {
  if (reply.no_store) return {Duration::zero(), false};
  return {std::min(reply.max_age.value_or(cache_ttl), bounds::service_ttl_max), keep_stale};
}

}  // namespace

Freshness http_freshness(std::span<const HttpHeader> headers, const ServiceReply& reply, Duration cache_ttl, Wall now) {
  CacheControl control;
  std::optional<Duration> expires;
  for (const HttpHeader& header : headers) {
    if (same_word(header.name, "cache-control")) take_field(header.value, control);
    if (!same_word(header.name, "expires") || expires) continue;
    // RFC 9111 §5.3: an invalid date, "0" above all, is in the past.
    const std::optional<Wall> date = parse_http_date(trim(header.value));
    expires = date && *date > now ? std::min(*date - now, bounds::service_ttl_max) : Duration::zero();
  }
  const bool keep_stale = !control.no_store && !reply.no_store;
  if (control.max_age) return {std::min(*control.max_age, bounds::service_ttl_max), keep_stale};
  if (control.no_cache || control.no_store) return {Duration::zero(), keep_stale};
  if (expires) return {*expires, keep_stale};
  return by_body(reply, cache_ttl, keep_stale);
}

Freshness grpc_freshness(const ServiceReply& reply, Duration cache_ttl) {
  return by_body(reply, cache_ttl, true);
}

}  // namespace weir::external
