#include "weir/redis/master_topology.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/redis/discovery.h"

namespace weir::redis {
namespace {

constexpr Duration kSearchEvery = std::chrono::milliseconds{200};
// Sentinels and servers take a moment to agree. Following each of their answers in turn would never connect to any
// server.
constexpr Duration kSettle = std::chrono::seconds{1};

}  // namespace

MasterTopology::MasterTopology(Loop& loop, MakeNode make_node, Options options)
    : loop_(loop), make_node_(std::move(make_node)), options_(std::move(options)), retired_(loop) {
  for (const Target& endpoint : options_.endpoints) add_probe(endpoint);
  search();
}

MasterTopology::~MasterTopology() {
  loop_.cancel(timer_);
}

void MasterTopology::add_probe(const Target& target) {
  const bool known = std::ranges::any_of(probes_, [&](const auto& probe) { return probe->target() == target; });
  if (known || probes_.size() >= bounds::redis_probes_max) return;
  RedisLink::Options link = options_.link;
  link.target = target;
  link.client.script = {};
  std::vector<std::string_view> command = {"ROLE"};
  if (!options_.master_name.empty()) {
    // Sentinels have their own users, if any, and would reject credentials for Redis.
    link.client.username.clear();
    link.client.password.clear();
    link.client.db = 0;
    link.client.channel = "+switch-master";
    command = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", options_.master_name};
  }
  probes_.push_back(std::make_unique<TopologyProbe>(loop_, static_cast<TopologyProbe::Owner&>(*this), std::move(link),
                                                    std::move(command)));
}

void MasterTopology::search() {
  searching_ = true;
  if (timer_ != 0) return;
  for (std::size_t i = 0; i < probes_.size(); ++i) probes_[i]->ask();
  timer_ = loop_.at(loop_.now().time + kSearchEvery, [this] {
    timer_ = 0;
    if (is_up() && !searching_) return;
    search();
  });
}

Result<void> MasterTopology::replied(const TopologyProbe& probe, const resp::Reply& reply) {
  if (!options_.master_name.empty()) {
    const auto master = read_master_address(reply, probe.target());
    if (!master) return master.error();
    if (searching_) found(*master);
    return {};
  }
  const auto role = read_role(reply, probe.target());
  if (!role) return role.error();
  if (role->kind == Role::Kind::sentinel) {
    return Error{Fault::unavailable, "it is a sentinel; redis.mode sentinel asks sentinels"};
  }
  if (role->kind == Role::Kind::replica) {
    add_probe(role->master);
    return Error{Fault::unavailable, "it is a replica of " + role->master.print()};
  }
  if (searching_) found(probe.target());
  return {};
}

void MasterTopology::pushed(const TopologyProbe& probe, const resp::Reply& push) {
  if (const auto master = read_switch(push, options_.master_name, probe.target())) follow(*master);
}

void MasterTopology::failed(std::string_view why) {
  // The first probe may fail before the last one is created.
  const bool all = probes_.size() >= options_.endpoints.size() &&
                   std::ranges::all_of(probes_, [](const auto& probe) { return probe->is_failing(); });
  if (all && options_.on_discovery_failed) options_.on_discovery_failed(why);
}

void MasterTopology::found(const Target& target) {
  if (master_ != nullptr && master_->target() == target) {
    // The server reports that it is the master: the READONLY came from before its promotion.
    searching_ = !master_->is_up();
  } else if (master_ == nullptr || loop_.now().time >= settled_) {
    follow(target);
  }
}

void MasterTopology::follow(const Target& target) {
  if (master_ != nullptr && master_->target() == target) return;
  retired_.add(std::move(master_));
  settled_ = loop_.now().time + kSettle;
  master_ = make_node_(target);
  master_->start();
  search();
}

std::vector<RedisNode*> MasterTopology::masters() {
  if (master_ == nullptr) return {};
  return {master_.get()};
}

Topology::Redirect MasterTopology::refused(RedisNode& node, const Refused& refused) {
  if (refused.refusal == Refusal::read_only && &node == master_.get()) search();
  // If the reply is from an old master, retry on the new one.
  return {&node == master_.get() || !is_up() ? nullptr : master_.get(), false};
}

void MasterTopology::changed(RedisNode& node) {
  if (&node != master_.get()) return;
  if (!node.is_up()) {
    search();
  } else if (loop_.now().time < settled_) {
    searching_ = false;
  }
}

}  // namespace weir::redis
