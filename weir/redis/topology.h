// Which Redis holds a key. Only this part of the store differs between single, replication, sentinel and cluster modes.
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

  // Keys with the same slot are charged by one script call.
  virtual int slot_of(std::string_view key) const noexcept = 0;
  // True if slots are spread over nodes; otherwise every key has the same slot.
  virtual bool is_sharded() const noexcept { return false; }
  // Returns the node of a slot; null if it is currently unknown.
  virtual RedisNode* node_of(int slot) = 0;
  // Returns every node that holds keys, each once; empty if they are currently unknown.
  virtual std::vector<RedisNode*> masters() = 0;

  // A node refused a command. Returns where to send it instead; without a node, the caller gets the refusal. Called for
  // every refusal except no_script, whether or not the command may be sent again, so that the topology can update
  // itself.
  struct Redirect {
    RedisNode* node = nullptr;
    bool asking = false;
  };
  virtual Redirect refused(RedisNode& node, const Refused& refused) = 0;

  // A link of a node came up or went down.
  virtual void changed(RedisNode& node) { (void)node; }
  // True if requests can be answered, as far as known. Reported by /readyz?deep=true and weir_store_up.
  virtual bool is_up() const noexcept = 0;
};

// Creates nodes for a topology; the store receives their replies. A node must live as long as the store or be destroyed
// outside its own callbacks.
using MakeNode = std::function<std::unique_ptr<RedisNode>(const Target& target)>;
using MakeTopology = std::function<std::unique_ptr<Topology>(Loop& loop, MakeNode make_node)>;

// Single mode: one Redis for all keys.
class SingleTopology final : public Topology {
 public:
  SingleTopology(const MakeNode& make_node, const Target& target) : node_(make_node(target)) { node_->start(); }

  int slot_of(std::string_view) const noexcept override { return 0; }
  RedisNode* node_of(int) override { return node_.get(); }
  std::vector<RedisNode*> masters() override { return {node_.get()}; }
  Redirect refused(RedisNode&, const Refused&) override { return {}; }
  bool is_up() const noexcept override { return node_->is_up(); }

 private:
  std::unique_ptr<RedisNode> node_;
};

}  // namespace weir::redis
