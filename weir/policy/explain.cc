#include "weir/policy/explain.h"

#include <algorithm>
#include <optional>
#include <span>

namespace weir {
namespace {

void measure(const Charge& charge, Label& label) {
  label.cost = charge.cost;
  if (charge.rate) {
    const RateCharge& rate = *charge.rate;
    label.rate = {rate.key, rate.limit.window(), rate.limit.interval(), rate.source};
  }
  if (charge.quota) {
    const Window& window = charge.quota->quota.window;
    label.quota = {charge.quota->key, window.end - window.start, Duration::zero(), charge.quota->source};
  }
}

// Adds a denial that does not come from a bucket after the other decisions and makes it the request's. Returns its
// label.
Label& refuse(Duration wait, Answer& answer) {
  Verdict& verdict = answer.verdict;
  const Decision denial{false, 0, 0, wait, Duration::zero()};
  const bool room = verdict.all.size() < bounds::charges_max;
  verdict.strictest = room ? verdict.all.size() : verdict.all.size() - 1;  // full: replace the last one
  verdict.allowed = false;
  if (room) {
    verdict.all.push_back(denial);
  } else {
    verdict.all[verdict.strictest] = denial;
  }
  return answer.labels[verdict.strictest];
}

// True if the client is allow-listed, or the id of every limit that would have been asked.
bool passes_by_list(const Resolved& resolved) {
  if (resolved.allow_listed()) return true;
  if (!resolved.charges().empty() || resolved.parts().empty()) return false;
  return std::ranges::all_of(resolved.parts(), [](const Part& p) { return p.standing == Standing::allow_listed; });
}

// The denial comes from an access list, not from a limit.
void refuse_access(const Resolved& resolved, Answer& answer) {
  answer.access = Access::deny_listed;
  const std::optional<Wall> until = resolved.denied_until();
  Label& label = refuse(until ? *until - answer.now.wall : kNever, answer);
  if (resolved.denied() != nullptr) {
    label = describe(*resolved.denied(), answer.route);
    label.shadow = false;
    return;
  }
  label = {};
  label.key = resolved.denied_client().name;
  label.limiter_type = label.key;
  label.id = resolved.denied_client().value;
  label.secret = label.key == "apikey";
}

// Adds the limits that had nothing to charge after the others, as far as there is room: unlimited ones, and shadow
// limits that would have blocked the id.
void name_uncharged(std::span<const Part> parts, Answer& answer) {
  constexpr Decision free{true, kUnbounded, kUnbounded, Duration::zero(), Duration::zero()};
  constexpr Decision blocked{false, 0, 0, kNever, Duration::zero()};
  for (const Part& part : parts) {
    const bool would_block = part.standing == Standing::blocked && part.mode == Enforcement::shadow;
    if (part.standing != Standing::unlimited && !would_block) continue;
    if (answer.verdict.all.size() == bounds::charges_max) return;
    answer.labels[answer.verdict.all.size()] = describe(part, answer.route);
    answer.verdict.all.push_back(would_block ? blocked : free);
  }
}

// A block does not deny a refund or a reset, but the answer says that the id is blocked.
void name_blocked(std::span<const Part> parts, Answer& answer) {
  for (const Part& part : parts) {
    if (part.standing != Standing::blocked || part.mode != Enforcement::enforce) continue;
    refuse(kNever, answer) = describe(part, answer.route);
    return;
  }
}

// Where a proxy sends the request: the first limit whose service names a backend decides.
void name_backend(const Resolved& resolved, Answer& answer) {
  answer.backend_unknown = resolved.lacks_backend();
  for (const Part& part : resolved.parts()) {
    if (part.limit->service == nullptr || part.mode == Enforcement::off) continue;
    if (part.answer == nullptr || part.answer->backend_url.empty()) {
      answer.backend_unknown |= part.limit->service->backend_required;
      continue;
    }
    answer.backend_url = part.answer->backend_url;
    answer.backend_hosts = part.limit->service->allowed_hosts;
    answer.backend_unknown = false;
    return;
  }
}

}  // namespace

Label describe(const Part& part, std::string_view route) {
  Label label;
  label.limit = part.limit->name;
  label.id = part.id;
  label.rate.source = part.source;
  label.route = route;
  // No single part of a composite key describes what is counted.
  label.key = part.limit->key.size() == 1 ? std::string_view(part.limit->key.front()) : std::string_view{};
  label.limiter_type = part.limit->limiter_type;
  label.shadow = part.mode == Enforcement::shadow;
  label.secret = part.limit->holds_api_key(part.id);
  label.tier = part.tier;
  return label;
}

void explain(const Policy& policy, const Resolved& resolved, Mode mode, Answer& answer) {
  const std::span<const Charge> charges = resolved.charges();
  answer.hash_key = policy.hash_key();
  answer.descriptors = resolved.descriptors();
  answer.joins = resolved.joins();
  if (resolved.route() != nullptr) answer.route = resolved.route()->name;
  for (const Part& part : resolved.parts()) {
    if (part.charge == kNoCharge || part.charge >= charges.size()) continue;
    Label& label = answer.labels[part.charge];
    label = describe(part, answer.route);
    measure(charges[part.charge], label);
  }
  const bool all_asked = answer.verdict.all.size() == charges.size();  // otherwise an earlier denial has answered
  if (passes_by_list(resolved)) answer.access = Access::allow_listed;
  if (resolved.deny_listed()) {
    refuse_access(resolved, answer);
  } else if (resolved.blocked() != nullptr) {
    // An override blocks the id: waiting does not help.
    if (answer.verdict.allowed) refuse(kNever, answer) = describe(*resolved.blocked(), answer.route);
  } else if (all_asked) {
    name_uncharged(resolved.parts(), answer);
    const bool gives_back = mode == Mode::refund || mode == Mode::reset;
    if (gives_back && answer.verdict.all.empty()) name_blocked(resolved.parts(), answer);
  }
  answer.labelled = std::max(charges.size(), answer.verdict.all.size());
  if (policy.has_services()) name_backend(resolved, answer);
}

void explain(const Charge& own, Answer& answer) {
  Label& label = answer.labels[0];
  measure(own, label);
  const std::string_view key = label.bucket();
  label.id = key.substr(key.starts_with(kOwnPrefix) ? kOwnPrefix.size() : 0);
  answer.labelled = 1;
}

}  // namespace weir
