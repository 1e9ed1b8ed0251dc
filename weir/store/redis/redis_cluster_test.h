// A test cluster with three masters, and helpers for tests of servers that move.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weir/redis/cluster_topology.h"
#include "weir/store/redis/redis_subject_test.h"

namespace weir::redis {

inline Target at(const RedisServer& server) {
  return {"127.0.0.1", server.port(), {}};
}

inline std::uint16_t free_port() {
  const auto socket = listen_on({"127.0.0.1", 0, {}});
  return bound_address(*socket)->port;
}

// Waits until `holds`; the test runner ends a test that waits forever.
template <class Holds>
void until(Holds holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds{5});
}

// Three masters, each with a third of the slots.
class Cluster : public testing::Test {
 protected:
  Cluster() {
    for (std::size_t i = 0; i < buses_.size(); ++i) {
      buses_[i] = std::to_string(free_port());
      nodes_.push_back(std::make_unique<RedisServer>(
          std::vector<std::string>{"--cluster-enabled", "yes", "--cluster-port", buses_[i], "--cluster-node-timeout",
                                   "1000", "--cluster-require-full-coverage", "no"}));
      const std::size_t first = i * kSlots / 3;
      const std::size_t last = (i + 1) * kSlots / 3 - 1;
      nodes_[i]->ask({"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
      nodes_[i]->ask({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    meet();
    for (const auto& node : nodes_) {
      int looks = 0;
      until([&] {
        // On a busy machine one side may forget a handshake that takes longer than the timeout of a node.
        if (++looks % 400 == 0) meet();
        const std::string state = node->ask({"CLUSTER", "INFO"});
        return state.find("cluster_state:ok") != std::string::npos &&
               state.find("cluster_slots_ok:16384") != std::string::npos;
      });
    }
  }
  // Makes every node know every other.
  void meet() {
    for (const auto& node : nodes_) {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i] == node) continue;
        node->ask({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[i]->port()), buses_[i]});
      }
    }
  }
  // Makes a store that knows only one of the masters.
  std::unique_ptr<StoreOnRedis> serve() {
    auto store = std::make_unique<StoreOnRedis>(
        [endpoint = at(*nodes_[2])](Loop& loop, const MakeNode& make_node) {
          return std::make_unique<ClusterTopology>(loop, make_node,
                                                   ClusterTopology::Options{{endpoint}, patient().link});
        },
        patient(1));
    store->wait_until(true);
    return store;
  }
  static std::size_t third_of(std::string_view key) { return slot_of("weir:b:" + std::string(key)) * 3 / kSlots; }
  // Returns the n-th key in a third of the slots. Kept, because charges point to it.
  const std::string& key_in(std::size_t third, int n = 0) {
    for (int i = 0;; ++i) {
      std::string key = "key-" + std::to_string(i);
      if (third_of(key) == third && n-- == 0) return kept_.emplace_back(std::move(key));
    }
  }
  std::string id_of(std::size_t node) { return nodes_[node]->ask({"CLUSTER", "MYID"}); }

  std::deque<std::string> kept_;
  std::array<std::string, 3> buses_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace weir::redis
