#include "weir/protocol/http/ratelimit_headers.h"

#include <algorithm>
#include <cstdint>

#include "weir/base/text_writer.h"

namespace weir {
namespace {

// An sf-string (RFC 8941 §3.3.3). Limits' names need no escapes; this does not depend on it.
void write_name(std::string_view name, TextWriter& out) {
  out.character('"');
  for (const char c : name) {
    if (c == '"' || c == '\\') out.character('\\');
    out.character(c >= 0x20 && c < 0x7F ? c : '?');
  }
  out.character('"');
}

void write_x_ratelimit(const Answer& answer, bool epoch, TextWriter& out) {
  const Decision& decision = answer.verdict.all[answer.verdict.strictest];
  const Duration since = epoch ? answer.now.wall.time_since_epoch() : Duration::zero();
  out.text("X-RateLimit-Limit: ").integer(decision.burst);
  out.text("\r\nX-RateLimit-Remaining: ").integer(decision.remaining);
  out.text("\r\nX-RateLimit-Reset: ").integer(ceil_seconds(since + decision.reset_after).count()).text("\r\n");
}

// Of a blocked id: there is no bucket whose numbers could be told, and no time at which to come back.
bool is_blocked(const Decision& decision) noexcept {
  return decision.burst == 0 && decision.retry_after == kNever;
}

// A client should know it: it enforces, and has numbers.
bool is_known(const Answer& answer, std::size_t i) noexcept {
  const bool silent = answer.labels[i].shadow || is_blocked(answer.verdict.all[i]);
  return !silent && answer.verdict.all[i].burst != kUnbounded && speaks_for_its_limit(answer, i);
}

// One limit may be charged for several ids, and nobody could tell apart two items of one name: the strictest is told.
bool speaks_for_its_name(const Answer& answer, std::size_t i) noexcept {
  for (std::size_t j = 0; j < answer.verdict.all.size(); ++j) {
    if (j == i || policy_name(answer.labels[j]) != policy_name(answer.labels[i]) || !is_known(answer, j)) continue;
    const Decision& mine = answer.verdict.all[i];
    const Decision& other = answer.verdict.all[j];
    if (j < i ? !stricter(mine, other) : stricter(other, mine)) return false;
  }
  return true;
}

// Calls `write` for each decision a client should know.
template <class Write>
void each_known(const Answer& answer, TextWriter& out, Write write) {
  bool first = true;
  for (std::size_t i = 0; i < answer.verdict.all.size(); ++i) {
    if (!is_known(answer, i) || !speaks_for_its_name(answer, i)) continue;
    if (!first) out.text(", ");
    first = false;
    write_name(policy_name(answer.labels[i]), out);
    write(answer.verdict.all[i], answer.labels[i]);
  }
}

void write_ietf(const Answer& answer, TextWriter& out) {
  out.text("RateLimit-Policy: ");
  each_known(answer, out, [&](const Decision& decision, const Label& label) {
    out.text(";q=").integer(decision.burst);
    out.text(";w=").integer(std::max<std::int64_t>(1, ceil_seconds(label.window).count()));
  });
  out.text("\r\nRateLimit: ");
  each_known(answer, out, [&](const Decision& decision, const Label& label) {
    out.text(";r=").integer(decision.remaining);
    out.text(";t=").integer(ceil_seconds(next_token_after(decision, label)).count());
  });
  out.text("\r\n");
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
  if (answer.labels[verdict.strictest].shadow) return;  // nothing enforces
  // Who is denied by a list has met no limit whose numbers could be told.
  const bool limited = answer.access != Access::deny_listed && !is_blocked(verdict.all[verdict.strictest]);
  TextWriter writer(out);
  if (families.x_ratelimit && limited) write_x_ratelimit(answer, families.reset_is_epoch, writer);
  if (families.ietf && limited) write_ietf(answer, writer);
  if (verdict.allowed) return;
  const Duration wait = verdict.all[verdict.strictest].retry_after;
  if (wait == kNever) return;
  writer.text("Retry-After: ").integer(std::max<std::int64_t>(1, ceil_seconds(wait).count())).text("\r\n");
}

}  // namespace weir
