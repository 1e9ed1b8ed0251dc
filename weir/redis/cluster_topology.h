// Redis Cluster: maps slots to masters from CLUSTER SLOTS and MOVED.
//
// Reloads the map after a MOVED, and a few times a second while a master is unreachable or a slot has no master,
// because a replica may have taken over. It queries one server at a time, in turn.
//
// Thread safety: none; use it on its loop's thread.
#pragma once

#include <memory>
#include <vector>

#include "weir/redis/retired.h"
#include "weir/redis/slots.h"
#include "weir/redis/topology.h"
#include "weir/redis/topology_probe.h"

namespace weir::redis {

class ClusterTopology final : public Topology, private TopologyProbe::Owner {
 public:
  struct Options {
    std::vector<Target> endpoints;  // some nodes of the cluster, at least one
    RedisLink::Options link;        // for the probes
    OnDiscoveryFailed on_discovery_failed{};
  };

  // The loop must outlive it.
  ClusterTopology(Loop& loop, MakeNode make_node, Options options);
  ~ClusterTopology() override;

  int slot_of(std::string_view key) const noexcept override { return redis::slot_of(key); }
  bool is_sharded() const noexcept override { return true; }
  RedisNode* node_of(int slot) override;
  // Empty while any slot has no known master.
  std::vector<RedisNode*> masters() override;
  Redirect refused(RedisNode& node, const Refused& refused) override;
  void changed(RedisNode& node) override;
  // True if every slot has a master and every master is reachable.
  bool is_up() const noexcept override;

 private:
  Result<void> replied(const TopologyProbe& probe, const resp::Reply& reply) override;
  void failed(std::string_view why) override;
  void add_probe(const Target& target);
  RedisNode* find_or_make(const Target& target);
  void assign_masters();
  void drop_unused();
  void ask_soon(Duration after);
  void ask();

  Loop& loop_;
  MakeNode make_node_;
  const Options options_;
  std::vector<std::unique_ptr<TopologyProbe>> probes_;
  std::size_t next_probe_ = 0;
  SlotMap slots_;
  std::vector<std::unique_ptr<RedisNode>> nodes_;
  std::vector<RedisNode*> masters_;  // one per slots_.masters(), at the same index
  RetiredNodes retired_;
  Loop::TimerId timer_ = 0;
  Time timer_at_{};
};

}  // namespace weir::redis
