// Nodes that are no longer used. A node cannot be destroyed inside its own callbacks and must report its pending
// commands as lost, so each is reset and destroyed in a later turn of the loop.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "weir/net/loop.h"
#include "weir/redis/redis_node.h"

namespace weir::redis {

class RetiredNodes {
 public:
  // The loop must outlive it.
  explicit RetiredNodes(Loop& loop) noexcept : loop_(loop) {}
  ~RetiredNodes() { loop_.cancel(timer_); }
  RetiredNodes(const RetiredNodes&) = delete;
  RetiredNodes& operator=(const RetiredNodes&) = delete;

  void add(std::unique_ptr<RedisNode> node) {
    if (node == nullptr) return;
    nodes_.push_back(std::move(node));
    if (timer_ == 0) timer_ = loop_.at(loop_.now().time, [this] { end(); });
  }

 private:
  void end() {
    timer_ = 0;
    for (const auto& node : std::exchange(nodes_, {})) node->reset("the server is no longer in use");
  }

  Loop& loop_;
  std::vector<std::unique_ptr<RedisNode>> nodes_;
  Loop::TimerId timer_ = 0;
};

}  // namespace weir::redis
