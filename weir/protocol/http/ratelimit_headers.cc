#include "weir/protocol/http/ratelimit_headers.h"

#include <algorithm>
#include <cstdint>

#include "weir/base/text.h"

namespace weir {
namespace {

void write_number_field(std::string_view name, std::int64_t number, std::string& out) {
  out += name;
  append_integer(number, out);
  out += "\r\n";
}

// An sf-string (RFC 8941 §3.3.3). Limits' names need no escapes; this does not depend on it.
void write_name(std::string_view name, std::string& out) {
  out += '"';
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= 0x20 && c < 0x7F ? c : '?';
  }
  out += '"';
}

void write_x_ratelimit(const Answer& answer, bool epoch, std::string& out) {
  const Decision& decision = answer.verdict.all[answer.verdict.strictest];
  write_number_field("X-RateLimit-Limit: ", decision.burst, out);
  write_number_field("X-RateLimit-Remaining: ", decision.remaining, out);
  const Duration since = epoch ? answer.now.wall.time_since_epoch() : Duration::zero();
  write_number_field("X-RateLimit-Reset: ", ceil_seconds(since + decision.reset_after).count(), out);
}

// Calls `write` for each decision a client should know: those that enforce, or the one that speaks.
template <class Write>
void each_known(const Answer& answer, std::string& out, Write write) {
  bool first = true;
  for (std::size_t i = 0; i < answer.verdict.all.size(); ++i) {
    const bool silent = answer.labels[i].shadow && i != answer.verdict.strictest;
    if (silent || answer.verdict.all[i].burst == kUnbounded) continue;
    if (!first) out += ", ";
    first = false;
    write_name(policy_name(answer.labels[i]), out);
    write(answer.verdict.all[i], answer.labels[i]);
  }
}

void write_ietf(const Answer& answer, std::string& out) {
  out += "RateLimit-Policy: ";
  each_known(answer, out, [&](const Decision& decision, const Label& label) {
    out += ";q=";
    append_integer(decision.burst, out);
    out += ";w=";
    append_integer(std::max<std::int64_t>(1, ceil_seconds(label.window).count()), out);
  });
  out += "\r\nRateLimit: ";
  each_known(answer, out, [&](const Decision& decision, const Label& label) {
    out += ";r=";
    append_integer(decision.remaining, out);
    out += ";t=";
    append_integer(ceil_seconds(next_token_after(decision, label)).count(), out);
  });
  out += "\r\n";
}

}  // namespace

std::string_view policy_name(const Label& label) noexcept {
  return label.limit.empty() ? "throttle" : label.limit;
}

Duration next_token_after(const Decision& decision, const Label& label) noexcept {
  if (decision.remaining >= decision.burst) return Duration::zero();
  // The tokens that will still be missing when the next one is back.
  const Count later = decision.burst - decision.remaining - 1;
  if (label.interval <= Duration::zero() || later > decision.reset_after / label.interval) return decision.reset_after;
  return decision.reset_after - label.interval * later;
}

void write_rate_headers(const Answer& answer, const HeaderFamilies& families, std::string& out) {
  const Verdict& verdict = answer.verdict;
  if (verdict.all.empty() || verdict.all[verdict.strictest].burst == kUnbounded) return;
  // Who is denied by a list has met no limit whose numbers could be told.
  const bool limited = answer.access != Access::deny_listed;
  if (families.x_ratelimit && limited) write_x_ratelimit(answer, families.reset_is_epoch, out);
  if (families.ietf && limited) write_ietf(answer, out);
  if (verdict.allowed) return;
  const Duration wait = verdict.all[verdict.strictest].retry_after;
  if (wait == kNever) return;
  write_number_field("Retry-After: ", std::max<std::int64_t>(1, ceil_seconds(wait).count()), out);
}

}  // namespace weir
