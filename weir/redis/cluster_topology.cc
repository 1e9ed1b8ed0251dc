#include "weir/redis/cluster_topology.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/redis/targets.h"

namespace weir::redis {
namespace {

constexpr Duration kAskEvery = std::chrono::milliseconds{200};

}  // namespace

ClusterTopology::ClusterTopology(Loop& loop, MakeNode make_node, Options options)
    : loop_(loop), make_node_(std::move(make_node)), options_(std::move(options)), retired_(loop) {
  for (const Target& endpoint : options_.endpoints) add_probe(endpoint);
  ask_soon(kAskEvery);
}

ClusterTopology::~ClusterTopology() {
  loop_.cancel(timer_);
}

void ClusterTopology::add_probe(const Target& target) {
  const bool known = std::ranges::any_of(probes_, [&](const auto& probe) { return probe->target() == target; });
  if (known || probes_.size() >= bounds::redis_probes_max) return;
  RedisLink::Options link = options_.link;
  link.target = target;
  link.client.script = {};
  probes_.push_back(std::make_unique<TopologyProbe>(loop_, static_cast<TopologyProbe::Owner&>(*this), std::move(link),
                                                    std::vector<std::string_view>{"CLUSTER", "SLOTS"}));
}

void ClusterTopology::ask_soon(Duration after) {
  const Time when = loop_.now().time + after;
  if (timer_ != 0 && timer_at_ <= when) return;
  loop_.cancel(timer_);
  timer_at_ = when;
  timer_ = loop_.at(when, [this] { ask(); });
}

void ClusterTopology::ask() {
  timer_ = 0;
  for (std::size_t tries = 0; tries < probes_.size(); ++tries) {
    if (probes_[next_probe_++ % probes_.size()]->ask()) break;
  }
  if (!is_up()) ask_soon(kAskEvery);
}

void ClusterTopology::failed(std::string_view why) {
  // The first probe may fail before the last one is created.
  const bool all = probes_.size() >= options_.endpoints.size() &&
                   std::ranges::all_of(probes_, [](const auto& probe) { return probe->is_failing(); });
  if (all && options_.on_discovery_failed) options_.on_discovery_failed(why);
}

Result<void> ClusterTopology::replied(const TopologyProbe& probe, const resp::Reply& reply) {
  auto read = SlotMap::read(reply, probe.target());
  if (!read) return read.error();
  // A node that was reset or is joining has no slots; keep the current map.
  if (read->masters().empty()) return Error{Fault::unavailable, "CLUSTER SLOTS answered without slots"};
  slots_ = std::move(*read);
  for (const Target& master : slots_.masters()) add_probe(master);
  assign_masters();
  drop_unused();
  if (!slots_.is_whole()) return Error{Fault::unavailable, "CLUSTER SLOTS answered with slots that have no master"};
  return {};
}

// Creates or finds a node for every master of the map.
void ClusterTopology::assign_masters() {
  masters_.clear();
  for (const Target& master : slots_.masters()) masters_.push_back(find_or_make(master));
}

RedisNode* ClusterTopology::find_or_make(const Target& target) {
  const auto found = std::ranges::find_if(nodes_, [&](const auto& node) { return node->target() == target; });
  if (found != nodes_.end()) return found->get();
  nodes_.push_back(make_node_(target));
  nodes_.back()->start();
  return nodes_.back().get();
}

void ClusterTopology::drop_unused() {
  for (std::unique_ptr<RedisNode>& node : nodes_) {
    if (std::ranges::find(slots_.masters(), node->target()) == slots_.masters().end()) retired_.add(std::move(node));
  }
  std::erase(nodes_, nullptr);
}

RedisNode* ClusterTopology::node_of(int slot) {
  const std::size_t master = slots_.index(static_cast<Slot>(slot));
  if (master != SlotMap::kNoMaster) return masters_[master];
  ask_soon(kAskEvery);
  return nullptr;
}

std::vector<RedisNode*> ClusterTopology::masters() {
  if (slots_.is_whole()) return masters_;
  ask_soon(kAskEvery);
  return {};
}

Topology::Redirect ClusterTopology::refused(RedisNode& node, const Refused& refused) {
  switch (refused.refusal) {
    case Refusal::moved:
    case Refusal::ask: {
      const auto target = parse_target(refused.address, node.target());
      if (refused.slot < 0 || !target) return {};
      if (refused.refusal == Refusal::ask) return {find_or_make(*target), true};
      ask_soon(Duration::zero());
      if (!slots_.moved(static_cast<Slot>(refused.slot), *target)) return {};
      assign_masters();
      return {find_or_make(*target), false};
    }
    case Refusal::try_again:
      return {&node, false};
    case Refusal::cluster_down:
    case Refusal::read_only:
      ask_soon(kAskEvery);
      return {};
    default:
      return {};
  }
}

void ClusterTopology::changed(RedisNode& node) {
  if (!node.is_up()) ask_soon(kAskEvery);
}

bool ClusterTopology::is_up() const noexcept {
  return slots_.is_whole() && std::ranges::all_of(nodes_, [](const auto& node) { return node->is_up(); });
}

}  // namespace weir::redis
