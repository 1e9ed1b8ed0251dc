// Replication and sentinel modes: one master, which can move between servers.
//
// Searches for the master while there is none, while the current one is unreachable, and after a READONLY, by querying
// a few times a second. In replication mode it sends ROLE to the servers; a replica names the next server to query. In
// sentinel mode it queries sentinels and acts on their announcements immediately. Otherwise it queries nothing: while
// the current master works, another server that becomes a master is ignored.
//
// Thread safety: none; use it on its loop's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/redis/retired.h"
#include "weir/redis/topology.h"
#include "weir/redis/topology_probe.h"

namespace weir::redis {

class MasterTopology final : public Topology, private TopologyProbe::Owner {
 public:
  struct Options {
    std::vector<Target> endpoints;  // servers, or sentinels; at least one
    std::string master_name;        // the master's name for sentinels; empty: the endpoints are servers
    RedisLink::Options link;        // for the probes
    OnDiscoveryFailed on_discovery_failed{};
  };

  // The loop must outlive it.
  MasterTopology(Loop& loop, MakeNode make_node, Options options);
  ~MasterTopology() override;

  int slot_of(std::string_view) const noexcept override { return 0; }
  RedisNode* node_of(int) override { return master_.get(); }
  std::vector<RedisNode*> masters() override;
  Redirect refused(RedisNode& node, const Refused& refused) override;
  void changed(RedisNode& node) override;
  bool is_up() const noexcept override { return master_ != nullptr && master_->is_up(); }

 private:
  Result<void> replied(const TopologyProbe& probe, const resp::Reply& reply) override;
  void pushed(const TopologyProbe& probe, const resp::Reply& push) override;
  void failed(std::string_view why) override;
  void add_probe(const Target& target);
  void search();
  void found(const Target& target);
  void follow(const Target& target);

  Loop& loop_;
  MakeNode make_node_;
  const Options options_;
  std::vector<std::unique_ptr<TopologyProbe>> probes_;
  std::unique_ptr<RedisNode> master_;
  RetiredNodes retired_;
  Time settled_{};  // until then a new master has time to become reachable
  bool searching_ = false;
  Loop::TimerId timer_ = 0;
};

}  // namespace weir::redis
