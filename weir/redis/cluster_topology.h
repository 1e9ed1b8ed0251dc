// A cluster: who serves which slot, as CLUSTER SLOTS says and MOVED corrects.
//
// The map is asked for again after a MOVED, and a few times a second while a master cannot be reached or a slot has
// none: a replica may have taken over. One server is asked at a time, the next one in turn.
//
// Thread safety: none; it belongs to its loop.
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
    RedisLink::Options link;        // for asking them
    NobodyKnows nobody_knows{};
  };

  // The loop must outlive it.
  ClusterTopology(Loop& loop, MakeNode make_node, Options options);
  ~ClusterTopology() override;

  int slot_of(std::string_view key) const noexcept override { return redis::slot_of(key); }
  bool is_sharded() const noexcept override { return true; }
  RedisNode* node_of(int slot) override;
  // Empty while a slot has no master that is known.
  std::vector<RedisNode*> masters() override;
  Next refused(RedisNode& node, const Refused& refused) override;
  void changed(RedisNode& node) override;
  // Every slot has a master, and every master can be reached.
  bool is_up() const noexcept override;

 private:
  void heard(const TopologyProbe& probe, const resp::Reply& reply) override;
  void failed(std::string_view why) override;
  void add_probe(const Target& target);
  RedisNode* find_or_make(const Target& target);
  void appoint();
  void drop_unused();
  void ask_soon(Duration after);
  void ask();

  Loop& loop_;
  MakeNode make_node_;
  const Options options_;
  std::vector<std::unique_ptr<TopologyProbe>> probes_;
  std::size_t next_scout_ = 0;
  SlotMap slots_;
  std::vector<std::unique_ptr<RedisNode>> nodes_;
  std::vector<RedisNode*> masters_;  // one per slots_.masters(), at the same index
  Retired retired_;
  Loop::TimerId timer_ = 0;
  Time timer_at_{};
};

}  // namespace weir::redis
