#include "weir/protocol/grpc/rls_status.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "weir/core/decision.h"

namespace weir::rls {
namespace {

using Standing = DescriptorAnswer::Standing;

std::uint32_t clamp32(Count count) noexcept {
  return static_cast<std::uint32_t>(std::clamp<Count>(count, 0, std::numeric_limits<std::uint32_t>::max()));
}

int unit_of(Duration period) noexcept {
  using namespace std::chrono;
  struct Unit {
    Duration period;
    int number;
  };
  constexpr std::array<Unit, 7> kUnits = {
      {{seconds{1}, 1}, {minutes{1}, 2}, {hours{1}, 3}, {days{1}, 4}, {days{30}, 5}, {days{365}, 6}, {days{7}, 7}}};
  const auto found = std::ranges::find(kUnits, period, &Unit::period);
  return found == kUnits.end() ? 0 : found->number;
}

std::int64_t ceil_seconds(Duration duration) noexcept {
  return std::chrono::ceil<std::chrono::seconds>(std::max(duration, Duration::zero())).count();
}

// Seconds until the request may pass if it is over the limit, otherwise until the bucket is full. If no wait helps,
// also until the bucket is full.
std::int64_t reset_of(const Decision& decision, bool over, const Label& label) noexcept {
  const Duration full = decision.reset_after == Duration::zero() && over ? label.rate.window : decision.reset_after;
  if (!over) return ceil_seconds(decision.reset_after);
  return std::max<std::int64_t>(ceil_seconds(decision.retry_after == kNever ? full : decision.retry_after), 1);
}

const Decision* decision_at(const Answer& answer, std::size_t index) noexcept {
  return index < answer.verdict.all.size() ? &answer.verdict.all[index].strictest() : nullptr;
}

bool is_alternative(const Answer& answer, std::size_t index) noexcept {
  return std::ranges::any_of(answer.descriptors, [index](const DescriptorAnswer& descriptor) {
    return descriptor.alternative && descriptor.standing == Standing::decided && descriptor.decision == index;
  });
}

}  // namespace

Status status_of(const Answer& answer, std::size_t i) noexcept {
  const DescriptorAnswer& descriptor = answer.descriptors[i];
  Status status;
  status.name = descriptor.name;
  const Decision* strictest = nullptr;
  if (descriptor.standing == Standing::unlimited) status.remaining = kUnlimited;
  if (descriptor.standing == Standing::blocked) {
    status.has_limit = true;
    status.over = !descriptor.shadow;
    status.unit = unit_of(descriptor.unit);
    status.multiplier = descriptor.multiplier;
    status.requests_per_unit = clamp32(descriptor.count);
  }
  if (descriptor.standing == Standing::decided) {
    strictest = decision_at(answer, descriptor.decision);
    if (strictest != nullptr) {
      status.has_limit = true;
      status.over = !strictest->allowed && !descriptor.shadow;
      status.unit = unit_of(descriptor.unit);
      status.multiplier = descriptor.multiplier;
      // The numbers in force: an override or an adjustment may have replaced the rule's.
      status.requests_per_unit = clamp32(strictest->burst);
      status.remaining = clamp32(strictest->remaining);
      status.reset_seconds = reset_of(*strictest, !strictest->allowed, answer.labels[descriptor.decision]);
    }
  }
  for (const DescriptorJoin& join : answer.joins) {
    const bool blocked = join.decision == DescriptorAnswer::kNone;
    const Decision* const joined = decision_at(answer, join.decision);
    if (join.descriptor != i || join.shadow || status.over) continue;
    if (!blocked && (joined == nullptr || (strictest != nullptr && !stricter(*joined, *strictest)))) continue;
    strictest = joined;
    status.has_limit = true;
    status.over = blocked || !joined->allowed;
    status.name = join.name;
    status.unit = unit_of(join.period);
    status.multiplier = 1;
    status.requests_per_unit = clamp32(join.count);
    status.remaining = blocked ? 0 : clamp32(joined->remaining);
    status.reset_seconds = blocked ? 0 : reset_of(*joined, status.over, answer.labels[join.decision]);
  }
  return status;
}

std::optional<std::int64_t> retry_seconds(const Answer& answer) noexcept {
  const Verdict& verdict = answer.verdict;
  if (verdict.allowed) return {};
  Duration wait = Duration::zero();
  Duration soonest = kNever;  // until one of the alternatives has room
  bool alternatives_deny = false;
  bool alternative_allows = false;
  for (std::size_t i = 0; i < verdict.all.size(); ++i) {
    const Decision& decision = verdict.all[i].strictest();
    if (answer.labels[i].shadow) continue;
    if (is_alternative(answer, i)) {
      alternatives_deny |= !decision.allowed;
      alternative_allows |= decision.allowed;
      soonest = std::min(soonest, decision.retry_after);
    } else if (!decision.allowed) {
      wait = std::max(wait, decision.retry_after);
    }
  }
  if (alternatives_deny && !alternative_allows) wait = std::max(wait, soonest);
  if (wait == kNever) return {};
  return std::max<std::int64_t>(ceil_seconds(wait), 1);
}

}  // namespace weir::rls
