// Which Redis holds a key. The one part of the store that single, replication, sentinel and cluster modes do
// differently.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "weir/net/resolve.h"
#include "weir/redis/redis_node.h"
#include "weir/redis/refusal.h"

namespace weir::redis {

class Topology {
 public:
  virtual ~Topology() = default;

  // Keys of one slot are charged by one script.
  virtual int slot_of(std::string_view key) const noexcept = 0;
  // Slots may live on different nodes; otherwise every key has the same slot.
  virtual bool is_sharded() const noexcept { return false; }
  // Where the slot lives; null: nobody knows, now.
  virtual RedisNode* node_of(int slot) = 0;
  // Every node that holds keys, each once; empty: nobody knows, now.
  virtual std::vector<RedisNode*> masters() = 0;

  // A node refused a command. Where to send it instead; null: nowhere, the asker gets the refusal. Called for every
  // refusal but no_script, whether the command may be sent again or not, so that the topology learns.
  struct Next {
    RedisNode* node = nullptr;
    bool asking = false;
  };
  virtual Next refused(RedisNode& node, const Refused& refused) = 0;

  // A link of a node has come up or gone down.
  virtual void changed(RedisNode& node) { (void)node; }
  // Questions can be answered, as far as is known: what /readyz?deep=true and weir_store_up tell.
  virtual bool is_up() const noexcept = 0;
};

// Makes nodes for a topology; the store hears their replies. A node must live as long as the store, or be destroyed
// outside of its own calls.
using MakeNode = std::function<std::unique_ptr<RedisNode>(const Target& target)>;
using MakeTopology = std::function<std::unique_ptr<Topology>(Loop& loop, MakeNode make_node)>;

// One Redis for everything.
class SingleTopology final : public Topology {
 public:
  SingleTopology(const MakeNode& make_node, const Target& target) : node_(make_node(target)) { node_->start(); }

  int slot_of(std::string_view) const noexcept override { return 0; }
  RedisNode* node_of(int) override { return node_.get(); }
  std::vector<RedisNode*> masters() override { return {node_.get()}; }
  Next refused(RedisNode&, const Refused&) override { return {}; }
  bool is_up() const noexcept override { return node_->is_up(); }

 private:
  std::unique_ptr<RedisNode> node_;
};

}  // namespace weir::redis
