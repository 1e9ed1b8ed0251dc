#include "weir/proxy/upstream.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "weir/base/assert.h"

namespace weir::proxy {
namespace {

constexpr unsigned kFailuresMax = 3;
constexpr Duration kFirstEjection = std::chrono::seconds{10};
constexpr Duration kLongestEjection = std::chrono::seconds{60};

}  // namespace

UpstreamGroup::UpstreamGroup(Upstreams& upstreams, std::span<const std::string> names) : upstreams_(upstreams) {
  WEIR_ASSERT(names.size() <= bounds::proxy_backends_max);
  for (const std::string& name : names) members_.push_back(upstreams_.find(name));
}

UpstreamGroup::Choice UpstreamGroup::choose(std::uint64_t tried, Time now) {
  const auto is_tried = [&](std::size_t i) { return (tried >> i & 1) != 0; };
  const std::size_t size = members_.size();
  if (size == 1) return is_tried(0) ? Choice{} : Choice{0, false, now};
  const std::lock_guard lock(upstreams_.mutex_);
  std::size_t soonest = kNone;
  const auto health = [&](std::size_t i) -> const Upstreams::Health& { return upstreams_.known_[members_[i]]; };
  for (std::size_t step = 0; step < size; ++step) {
    const std::size_t i = (next_ + step) % size;
    if (!health(i).ejected(now)) {
      if (is_tried(i)) continue;
      next_ = (i + 1) % size;
      return {i, false, now};
    }
    if (soonest == kNone || health(i).ejected_until < health(soonest).ejected_until) soonest = i;
  }
  // Any healthy backend was tried already. Ejected ones get a request, as a probe, only while all are ejected.
  const bool all_ejected =
      std::ranges::all_of(members_, [&](std::size_t m) { return upstreams_.known_[m].ejected(now); });
  if (!all_ejected || probing_ || tried != 0) return {};
  probing_ = true;
  return {soonest, true, now};
}

UpstreamChange UpstreamGroup::finished(const Choice& choice, UpstreamOutcome outcome, Time now) {
  WEIR_ASSERT(choice.index < members_.size());
  const std::lock_guard lock(upstreams_.mutex_);
  if (choice.probe) probing_ = false;
  Upstreams::Health& health = upstreams_.known_[members_[choice.index]];
  if (outcome == UpstreamOutcome::failure) ++health.failed;
  if (outcome == UpstreamOutcome::success) {
    health.seconds.add(now - choice.at);
    const bool was_down = std::exchange(health.failures, 0) >= kFailuresMax;
    health.ejected_for = {};
    health.ejected_until = Time::min();
    return was_down ? UpstreamChange::came_back : UpstreamChange::none;
  }
  if (outcome != UpstreamOutcome::failure || ++health.failures < kFailuresMax) return UpstreamChange::none;
  const UpstreamChange change = health.failures == kFailuresMax ? UpstreamChange::went_down : UpstreamChange::none;
  // Requests that were under way when it was ejected do not lengthen the time.
  if (health.ejected(now) && !choice.probe) return change;
  health.ejected_for = std::clamp(health.ejected_for * 2, kFirstEjection, kLongestEjection);
  health.ejected_until = now + health.ejected_for;
  return change;
}

std::size_t Upstreams::find(const std::string& name) {
  const auto found = std::ranges::find(known_, name, &Health::name);
  if (found != known_.end()) return static_cast<std::size_t>(found - known_.begin());
  known_.emplace_back(name);
  return known_.size() - 1;
}

std::shared_ptr<UpstreamGroup> Upstreams::group(std::span<const std::string> names) {
  const std::lock_guard lock(mutex_);
  std::erase_if(groups_, [](const auto& group) { return group.second.expired(); });
  std::weak_ptr<UpstreamGroup>& known = groups_[{names.begin(), names.end()}];
  std::shared_ptr<UpstreamGroup> group = known.lock();
  if (group == nullptr) {
    group = std::make_shared<UpstreamGroup>(*this, names);
    known = group;
  }
  return group;
}

std::vector<BackendState> Upstreams::list() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string_view> names;
  for (const auto& [members, group] : groups_) {
    if (!group.expired()) names.insert(members.begin(), members.end());
  }
  std::vector<BackendState> all;
  for (const std::string_view name : names) {
    BackendState& state = all.emplace_back();
    state.backend = name;
    const auto health = std::ranges::find(known_, name, &Health::name);
    if (health == known_.end()) continue;
    state.up = health->failures < kFailuresMax;
    state.failed = health->failed;
    for (std::size_t i = 0; i < state.seconds.size(); ++i) {
      state.seconds[i] = health->seconds.count(i);
      state.responses += state.seconds[i];
    }
  }
  return all;
}

}  // namespace weir::proxy
