// The store on servers that fail over and move: real masters, replicas, sentinels and clusters.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "weir/redis/master_topology.h"
#include "weir/store/redis/redis_cluster_test.h"

namespace weir::redis::topology_live_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kThree = Limit::per_hour(3);

MakeTopology master_of(std::vector<Target> endpoints, std::string master_name = {}) {
  return [=](Loop& loop, const MakeNode& make_node) {
    return std::make_unique<MasterTopology>(loop, make_node,
                                            MasterTopology::Options{endpoints, master_name, patient().link});
  };
}

Charge of(std::string_view key, Count cost = 1) {
  Charge charge;
  charge.limit_name = key;
  charge.rate = RateCharge{key, kThree};
  charge.cost = cost;
  return charge;
}

Result<Verdict> ask(StoreOnRedis& store, const std::vector<Charge>& charges, Order order = Order::together,
                    Mode mode = Mode::spend) {
  const std::vector<Question> batch = {{0, charges, mode, order}};
  return store.ask(batch).at(0);
}

// Returns what is left of a bucket; asks until Redis answers.
Count left(StoreOnRedis& store, std::string_view key) {
  for (;;) {
    if (const auto verdict = ask(store, {of(key, 0)})) return verdict->all[0].strictest().remaining;
    std::this_thread::sleep_for(5ms);
  }
}

// Makes a master start a replica's full sync at once instead of waiting for more replicas.
const std::vector<std::string> kPrompt = {"--repl-diskless-sync-delay", "0"};

void until_caught_up(RedisServer& replica) {
  until([&] { return replica.ask({"ROLE"}).find("connected") != std::string::npos; });
}

TEST(Replication, FindsAMasterThatOnlyAReplicaNames) {
  RedisServer master(kPrompt);
  RedisServer replica({"--replicaof", "127.0.0.1", std::to_string(master.port())});
  until_caught_up(replica);
  StoreOnRedis store(master_of({at(replica)}), patient(1));
  store.wait_until(true);
  EXPECT_EQ(ask(store, {of("a")})->all[0].strictest().remaining, 2);
  EXPECT_EQ(master.ask({"DBSIZE"}), "1");
}

TEST(Replication, SaysWhyNobodyCanBeAskedForTheMasterOnceNobodyCan) {
  RedisServer closed({"--requirepass", "secret"});
  RedisServer other({"--requirepass", "secret"});
  std::promise<std::string> record;
  std::atomic<int> times = 0;
  StoreOnRedis store(
      [&](Loop& loop, const MakeNode& make_node) {
        return std::make_unique<MasterTopology>(
            loop, make_node,
            MasterTopology::Options{{at(closed), at(other)}, {}, patient().link, [&](std::string_view why) {
                                      if (times++ == 0) record.set_value(std::string(why));
                                    }});
      },
      patient(1));
  EXPECT_NE(record.get_future().get().find("NOAUTH"), std::string::npos);
  EXPECT_EQ(times, 1) << "not for the first of them";
}

TEST(Replication, FollowsTheMasterToAnotherServer) {
  RedisServer first(kPrompt);
  RedisServer second({"--replicaof", "127.0.0.1", std::to_string(first.port()), "--repl-diskless-sync-delay", "0"});
  until_caught_up(second);
  StoreOnRedis store(master_of({at(first), at(second)}), patient(1));
  store.wait_until(true);
  ASSERT_EQ(ask(store, {of("a")})->all[0].strictest().remaining, 2);
  until([&] { return second.ask({"DBSIZE"}) == "1"; });
  second.ask({"REPLICAOF", "NO", "ONE"});
  first.ask({"REPLICAOF", "127.0.0.1", std::to_string(second.port())});
  until([&] { return ask(store, {of("b")}).has_value(); });
  EXPECT_EQ(left(store, "a"), 2) << "replicated before the move";
  second.kill();
  first.ask({"REPLICAOF", "NO", "ONE"});
  until([&] { return ask(store, {of("c")}).has_value(); });
  EXPECT_EQ(left(store, "a"), 2);
}

TEST(Sentinel, TellsWhereTheMasterIsAndWhereItGoes) {
  RedisServer master(kPrompt);
  RedisServer replica({"--replicaof", "127.0.0.1", std::to_string(master.port())});
  until_caught_up(replica);
  const auto file = std::filesystem::temp_directory_path() / ("weir-sentinel-" + std::to_string(master.port()));
  std::ofstream(file) << "sentinel monitor main 127.0.0.1 " << master.port()
                      << " 1\nsentinel down-after-milliseconds main 500\n";
  RedisServer sentinel({file.string(), "--sentinel"});
  until([&] { return sentinel.ask({"SENTINEL", "REPLICAS", "main"}).find("127.0.0.1") != std::string::npos; });
  // The first sentinel does not exist.
  StoreOnRedis store(master_of({Target{"127.0.0.1", free_port(), {}}, at(sentinel)}, "main"), patient(1));
  store.wait_until(true);
  ASSERT_EQ(ask(store, {of("a")})->all[0].strictest().remaining, 2);
  until([&] { return replica.ask({"DBSIZE"}) == "1"; });
  until([&] { return sentinel.ask({"SENTINEL", "FAILOVER", "main"}) == "OK"; });
  // Query the sentinel: the new master drops its connections once.
  const std::string promoted = "[127.0.0.1, " + std::to_string(replica.port()) + "]";
  until([&] { return sentinel.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"}) == promoted; });
  until([&] {
    (void)ask(store, {of("b")});
    return replica.ask({"EXISTS", "weir:b:b"}) == "1";
  });
  EXPECT_EQ(left(store, "a"), 2);
  sentinel.kill();
  std::filesystem::remove(file);
}

TEST_F(Cluster, BucketsLiveInTheirSlots) {
  const auto store = serve();
  for (int i = 0; i < 60; ++i) {
    const std::string key = "key-" + std::to_string(i);
    EXPECT_EQ(ask(*store, {of(key)})->all[0].strictest().remaining, 2);
  }
  for (const auto& node : nodes_) EXPECT_NE(node->ask({"DBSIZE"}), "0");
  // Reaching one master before the others is not an outage.
  EXPECT_EQ(store->log(), std::vector<std::string>{"Redis connected"});
}

TEST_F(Cluster, TogetherTakesFromAllSlotsOrNone) {
  const auto store = serve();
  const std::vector<Charge> charges = {of(key_in(0)), of(key_in(1), 2), of(key_in(2)), of(key_in(0, 1))};
  EXPECT_TRUE(ask(*store, charges)->allowed);
  for (int i = 0; i < 20; ++i) {
    const auto denied = ask(*store, charges);
    ASSERT_TRUE(denied);
    EXPECT_FALSE(denied->allowed);
    EXPECT_EQ(denied->strictest, 1u);
    EXPECT_EQ(denied->all.size(), 4u);
  }
  // The spends of a denied question are undone; no client waits for that.
  for (const std::size_t i : {0u, 2u, 3u}) {
    until([&] { return left(*store, charges[i].rate->key) == 2; });
  }
  EXPECT_EQ(left(*store, key_in(1)), 1);
}

TEST_F(Cluster, ALimitWhoseRateAndQuotaLieInTwoSlotsTakesFromBothOrNone) {
  const auto store = serve();
  const Wall start = std::chrono::floor<std::chrono::hours>(BootClock::wall());
  for (const bool shadow : {false, true}) {
    const std::string& key = key_in(0, shadow ? 1 : 0);
    Charge charge = of(key);
    charge.shadow = shadow;
    charge.quota = QuotaCharge{key, {1, {start, start + 1h}, start + 2h}};
    ASSERT_NE(slot_of("weir:b:" + key), slot_of("weir:w:" + key));
    EXPECT_TRUE(ask(*store, {charge})->all[0].allowed());
    for (int i = 0; i < 10; ++i) {
      const auto denied = ask(*store, {charge});
      ASSERT_TRUE(denied);
      EXPECT_EQ(denied->allowed, shadow);
      ASSERT_EQ(denied->all.size(), 1u);
      EXPECT_EQ(denied->all[0].stricter(), Kind::quota);
      EXPECT_TRUE(denied->all[0].half(Kind::bucket)->allowed);
    }
    until([&] { return left(*store, key) == 2; });
  }
}

TEST_F(Cluster, InOrderStopsAtTheFirstSlotThatDenies) {
  const auto store = serve();
  const std::vector<Charge> charges = {of(key_in(0)), of(key_in(1), 3), of(key_in(2))};
  EXPECT_TRUE(ask(*store, charges, Order::in_order)->allowed);
  const auto denied = ask(*store, charges, Order::in_order);
  EXPECT_FALSE(denied->allowed);
  EXPECT_EQ(denied->all.size(), 2u);
  EXPECT_EQ(left(*store, key_in(0)), 1) << "before the denial: charged";
  EXPECT_EQ(left(*store, key_in(2)), 2) << "behind it: untouched";
}

TEST_F(Cluster, FollowsASlotThatMoves) {
  const auto store = serve();
  const std::string key = key_in(0);
  const std::string name = "weir:b:" + key;
  const std::string slot = std::to_string(slot_of(name));
  ASSERT_EQ(ask(*store, {of(key)})->all[0].strictest().remaining, 2);
  nodes_[1]->ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(0)});
  nodes_[0]->ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(1)});
  EXPECT_EQ(left(*store, key), 2) << "the key is still at home";
  ASSERT_EQ(nodes_[0]->ask({"MIGRATE", "127.0.0.1", std::to_string(nodes_[1]->port()), name, "0", "5000"}), "OK");
  EXPECT_EQ(ask(*store, {of(key)})->all[0].strictest().remaining, 1) << "ASK: the key has gone ahead of its slot";
  for (const std::size_t node : {1u, 0u, 2u}) nodes_[node]->ask({"CLUSTER", "SETSLOT", slot, "NODE", id_of(1)});
  EXPECT_EQ(ask(*store, {of(key)})->all[0].strictest().remaining, 0) << "MOVED";
  EXPECT_FALSE(ask(*store, {of(key)})->allowed);
}

TEST_F(Cluster, OtherSlotsGoOnWhileANodeIsAway) {
  const auto store = serve();
  for (std::size_t third = 0; third < 3; ++third) ASSERT_TRUE(ask(*store, {of(key_in(third))}));
  nodes_[1]->kill();
  until([&] { return !ask(*store, {of(key_in(1))}); });
  EXPECT_EQ(ask(*store, {of(key_in(1, 1))}).error().fault, Fault::unavailable);
  EXPECT_EQ(left(*store, key_in(0)), 2);
  EXPECT_EQ(left(*store, key_in(2)), 2);
  EXPECT_FALSE(store->health().is_up());
  nodes_[1]->start();
  EXPECT_EQ(left(*store, key_in(1)), 3) << "restarted empty: one burst";
  until([&] {
    (void)ask(*store, {of(key_in(1, 2), 0)});
    return store->health().is_up();
  });
}

}  // namespace
}  // namespace weir::redis::topology_live_test
