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

// Until something is left, or until all is. What no wait helps is told when the bucket is full.
std::int64_t reset_of(const Decision& decision, bool over, const Label& label) noexcept {
  const Duration full = decision.reset_after == Duration::zero() && over ? label.rate.window : decision.reset_after;
  if (!over) return ceil_seconds(decision.reset_after);
  return std::max<std::int64_t>(ceil_seconds(decision.retry_after == kNever ? full : decision.retry_after), 1);
}

const Decision* decision_at(const Answer& answer, std::size_t index) noexcept {
  return index < answer.verdict.all.size() ? &answer.verdict.all[index].strictest() : nullptr;
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
    const Decision* const joined = decision_at(answer, join.decision);
    if (join.descriptor != i || joined == nullptr || join.shadow || status.over) continue;
    if (strictest != nullptr && !stricter(*joined, *strictest)) continue;
    strictest = joined;
    status.has_limit = true;
    status.over = !joined->allowed;
    status.name = join.name;
    status.unit = unit_of(join.period);
    status.multiplier = 1;
    status.requests_per_unit = clamp32(join.count);
    status.remaining = clamp32(joined->remaining);
    status.reset_seconds = reset_of(*joined, status.over, answer.labels[join.decision]);
  }
  return status;
}

std::optional<std::int64_t> retry_seconds(const Answer& answer) noexcept {
  const Verdict& verdict = answer.verdict;
  if (verdict.allowed || verdict.all.empty() || verdict.speaker().retry_after == kNever) return {};
  return std::max<std::int64_t>(ceil_seconds(verdict.speaker().retry_after), 1);
}

}  // namespace weir::rls
