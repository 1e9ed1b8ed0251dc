// Nodes that are asked no more. They cannot end inside their own calls, and what they still owe must be told: each is
// given up and destroyed in a later turn of the loop.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "weir/net/loop.h"
#include "weir/redis/redis_node.h"

namespace weir::redis {

class Retired {
 public:
  // The loop must outlive it.
  explicit Retired(Loop& loop) noexcept : loop_(loop) {}
  ~Retired() { loop_.cancel(timer_); }
  Retired(const Retired&) = delete;
  Retired& operator=(const Retired&) = delete;

  void add(std::unique_ptr<RedisNode> node) {
    if (node == nullptr) return;
    nodes_.push_back(std::move(node));
    if (timer_ == 0) timer_ = loop_.at(loop_.now().time, [this] { end(); });
  }

 private:
  void end() {
    timer_ = 0;
    for (const auto& node : std::exchange(nodes_, {})) node->reset("it is not asked any more");
  }

  Loop& loop_;
  std::vector<std::unique_ptr<RedisNode>> nodes_;
  Loop::TimerId timer_ = 0;
};

}  // namespace weir::redis
