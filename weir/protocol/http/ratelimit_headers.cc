#include "weir/protocol/http/ratelimit_headers.h"

#include <algorithm>
#include <cstdint>

#include "weir/base/text_writer.h"

namespace weir {
namespace {

// An sf-string (RFC 8941 §3.3.3). Limits' names need no escapes; this does not depend on it.
void write_name(std::string_view name, std::string_view suffix, TextWriter& out) {
  out.character('"');
  for (const char c : name) {
    if (c == '"' || c == '\\') out.character('\\');
    out.character(c >= 0x20 && c < 0x7F ? c : '?');
  }
  out.text(suffix).character('"');
}

void write_x_ratelimit(const Answer& answer, bool epoch, TextWriter& out) {
  const Decision& decision = answer.verdict.speaker();
  const Duration since = epoch ? answer.now.wall.time_since_epoch() : Duration::zero();
  out.text("X-RateLimit-Limit: ").integer(decision.burst);
  out.text("\r\nX-RateLimit-Remaining: ").integer(decision.remaining);
  out.text("\r\nX-RateLimit-Reset: ").integer(ceil_seconds(since + decision.reset_after).count()).text("\r\n");
}

// True for a blocked id: there are no bucket numbers to report, and no time to retry at.
bool is_blocked(const Decision& decision) noexcept {
  return decision.burst == 0 && decision.retry_after == kNever;
}

// The decision of one half of a limit, if it is reported to clients: it enforces and has numbers. Null otherwise.
const Decision* known_half(const Answer& answer, std::size_t i, Kind kind) noexcept {
  const Decision* const half = answer.verdict.all[i].half(kind);
  if (half == nullptr || answer.labels[i].shadow || is_blocked(*half) || half->burst == kUnbounded) return nullptr;
  return half;
}

std::string_view suffix_of(const LimitDecision& decision, Kind kind) noexcept {
  return decision.has_both() && kind == Kind::quota ? kQuotaSuffix : std::string_view{};
}

// A limit may be charged for several ids, and two items of one name would be ambiguous: only the strictest is reported.
bool speaks_for_its_name(const Answer& answer, std::size_t i, Kind kind) noexcept {
  const Decision& mine = *known_half(answer, i, kind);
  for (std::size_t j = 0; j < answer.verdict.all.size(); ++j) {
    if (j == i || policy_name(answer.labels[j]) != policy_name(answer.labels[i])) continue;
    const Decision* const other = known_half(answer, j, kind);
    if (other == nullptr) continue;
    if (j < i ? !stricter(mine, *other) : stricter(*other, mine)) return false;
  }
  return true;
}

// Calls `write` for each reported decision: a limit's rate, then its quota.
template <class Write>
void each_known(const Answer& answer, TextWriter& out, Write write) {
  bool first = true;
  for (std::size_t i = 0; i < answer.verdict.all.size(); ++i) {
    for (const Kind kind : {Kind::bucket, Kind::quota}) {
      const Decision* const half = known_half(answer, i, kind);
      if (half == nullptr || !speaks_for_its_name(answer, i, kind)) continue;
      if (!first) out.text(", ");
      first = false;
      write_name(policy_name(answer.labels[i]), suffix_of(answer.verdict.all[i], kind), out);
      write(*half, answer.labels[i].half(kind));
    }
  }
}

void write_ietf(const Answer& answer, TextWriter& out) {
  out.text("RateLimit-Policy: ");
  each_known(answer, out, [&](const Decision& decision, const BucketLabel& label) {
    out.text(";q=").integer(decision.burst);
    out.text(";w=").integer(std::max<std::int64_t>(1, ceil_seconds(label.window).count()));
  });
  out.text("\r\nRateLimit: ");
  each_known(answer, out, [&](const Decision& decision, const BucketLabel& label) {
    out.text(";r=").integer(decision.remaining);
    out.text(";t=").integer(ceil_seconds(next_token_after(decision, label)).count());
  });
  out.text("\r\n");
}

}  // namespace

std::string_view policy_name(const Label& label) noexcept {
  return label.limit.empty() ? "throttle" : label.limit;
}

Duration next_token_after(const Decision& decision, const BucketLabel& label) noexcept {
  if (decision.remaining >= decision.burst) return Duration::zero();
  // The tokens that will still be missing when the next one is back.
  const Count later = decision.burst - decision.remaining - 1;
  if (label.interval <= Duration::zero() || later > decision.reset_after / label.interval) return decision.reset_after;
  return decision.reset_after - label.interval * later;
}

void write_rate_headers(const Answer& answer, const HeaderFamilies& families, std::string& out) {
  const Verdict& verdict = answer.verdict;
  if (verdict.all.empty() || verdict.speaker().burst == kUnbounded) return;
  if (answer.labels[verdict.strictest].shadow) return;  // nothing enforces
  // For a client denied by a list, there are no limit numbers to report.
  const bool limited = answer.access != Access::deny_listed && !is_blocked(verdict.speaker());
  TextWriter writer(out);
  if (families.x_ratelimit && limited) write_x_ratelimit(answer, families.reset_is_epoch, writer);
  if (families.ietf && limited) write_ietf(answer, writer);
  if (verdict.allowed) return;
  const Duration wait = verdict.speaker().retry_after;
  if (wait == kNever) return;
  writer.text("Retry-After: ").integer(std::max<std::int64_t>(1, ceil_seconds(wait).count())).text("\r\n");
}

}  // namespace weir
