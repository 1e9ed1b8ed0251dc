// One master that may move from server to server: replication and sentinel modes.
//
// It searches while there is no master, while the one it has cannot be reached, and after a READONLY; then the servers
// that know are asked a few times a second. In replication mode these are the servers themselves, asked for their ROLE;
// a replica names another one to ask. In sentinel mode they are sentinels, and what they announce is believed at once.
// Otherwise nobody is asked: a server that becomes master beside ours is none of our business while ours is one.
//
// Thread safety: none; it belongs to its loop.
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
    std::string master_name;        // what sentinels call the master; empty: the endpoints are servers
    RedisLink::Options link;        // for asking them
    NobodyKnows nobody_knows{};
  };

  // The loop must outlive it.
  MasterTopology(Loop& loop, MakeNode make_node, Options options);
  ~MasterTopology() override;

  int slot_of(std::string_view) const noexcept override { return 0; }
  RedisNode* node_of(int) override { return master_.get(); }
  std::vector<RedisNode*> masters() override;
  Next refused(RedisNode& node, const Refused& refused) override;
  void changed(RedisNode& node) override;
  bool is_up() const noexcept override { return master_ != nullptr && master_->is_up(); }

 private:
  void heard(const TopologyProbe& probe, const resp::Reply& reply) override;
  void told(const TopologyProbe& probe, const resp::Reply& push) override;
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
  Retired retired_;
  Time settled_{};  // a master that was just found is given this long to be reached
  bool searching_ = false;
  Loop::TimerId timer_ = 0;
};

}  // namespace weir::redis
