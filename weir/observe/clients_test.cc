#include "weir/observe/clients.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::clients_test {
namespace {

Answer answer_to(std::string_view bucket, bool allowed, std::int64_t second = 0) {
  Answer answer;
  answer.verdict.all.push_back(Decision{allowed, 10, allowed ? 5 : 0, {}, {}});
  answer.verdict.allowed = allowed;
  answer.labels[0].limit = "per-ip";
  answer.labels[0].rate.key = bucket;
  answer.labels[0].id = bucket.substr(bucket.find(':') + 1);
  answer.now.wall = Wall{std::chrono::seconds{second}};
  return answer;
}

TEST(LoopClients, CountsWhatEachClientWasTold) {
  LoopClients clients;
  clients.record(answer_to("per-ip:a", true, 1));
  clients.record(answer_to("per-ip:a", false, 2));
  clients.record(answer_to("per-ip:b", true, 3));
  const auto tracked = tracked_clients({&clients});
  ASSERT_EQ(tracked.size(), 2u);
  const ClientCounters& a = tracked.at("per-ip:a");
  EXPECT_EQ(a.limit, "per-ip");
  EXPECT_EQ(a.id, "a");
  EXPECT_EQ(a.allowed, 1u);
  EXPECT_EQ(a.denied, 1u) << "both sketches keep it; it is counted once";
  EXPECT_EQ(a.first_seen, Wall{std::chrono::seconds{1}});
  EXPECT_EQ(a.last_seen, Wall{std::chrono::seconds{2}});
  ASSERT_EQ(a.denials.size(), 1u);
}

TEST(LoopClients, TakesARateAndItsQuotaForOneClient) {
  LoopClients clients;
  Answer both = answer_to("per-ip:a", true);
  both.verdict.all[0] = {Decision{true, 10, 5, {}, {}}, Decision{false, 10, 0, {}, {}}};
  both.labels[0].quota.key = "per-ip:a";
  clients.record(both);
  const ClientCounters a = tracked_clients({&clients}).at("per-ip:a");
  EXPECT_EQ(a.allowed, 0u);
  EXPECT_EQ(a.denied, 1u);
}

TEST(LoopClients, CountsShadowDenialsSeparately) {
  LoopClients clients;
  Answer shadow = answer_to("per-ip:a", false);
  shadow.labels[0].shadow = true;
  clients.record(shadow);
  const ClientCounters a = tracked_clients({&clients}).at("per-ip:a");
  EXPECT_EQ(a.denied, 0u);
  EXPECT_EQ(a.shadow_denied, 1u);
  EXPECT_TRUE(a.denials.empty());
  EXPECT_TRUE(top_clients({&clients}, TopBy::denied, 10).empty());
  EXPECT_EQ(top_clients({&clients}, TopBy::shadow_denied, 10).size(), 1u);
}

TEST(LoopClients, KeepsOnlyTheLastDenials) {
  LoopClients clients;
  const auto denials = static_cast<std::int64_t>(bounds::denials_kept);
  for (std::int64_t i = 0; i <= denials; ++i) clients.record(answer_to("per-ip:a", false, i));
  const ClientCounters a = tracked_clients({&clients}).at("per-ip:a");
  ASSERT_EQ(a.denials.size(), bounds::denials_kept);
  EXPECT_EQ(a.denials.front(), Wall{std::chrono::seconds{1}});
  EXPECT_EQ(a.denials.back(), Wall{std::chrono::seconds{denials}});
}

TEST(LoopClients, IsBoundedHoweverManyClientsCome) {
  LoopClients clients(4);
  for (int i = 0; i < 1000; ++i) clients.record(answer_to("per-ip:" + std::to_string(i), i % 2 == 0));
  std::uint64_t floor = 0;
  EXPECT_EQ(clients.kept(TopBy::requests, floor).size(), 4u);
  EXPECT_GT(floor, 0u);
  EXPECT_LE(tracked_clients({&clients}).size(), 8u);
}

TEST(TopClients, SumsTheLoopsAndPutsTheHeaviestFirst) {
  LoopClients one;
  LoopClients two;
  for (int i = 0; i < 3; ++i) one.record(answer_to("per-ip:a", true));
  for (int i = 0; i < 2; ++i) two.record(answer_to("per-ip:a", false));
  for (int i = 0; i < 4; ++i) two.record(answer_to("per-ip:b", true));
  const auto top = top_clients({&one, &two}, TopBy::requests, 10);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, "a");
  EXPECT_EQ(top[0].count, 5u);
  EXPECT_EQ(top[0].error, 0u);
  EXPECT_EQ(top[1].count, 4u);
  const auto denied = top_clients({&one, &two}, TopBy::denied, 10);
  ASSERT_EQ(denied.size(), 1u);
  EXPECT_EQ(denied[0].count, 2u);
  EXPECT_EQ(top_clients({&one, &two}, TopBy::requests, 1).size(), 1u);
}

TEST(TopClients, AddsWhatALoopThatDoesNotKeepTheClientMayHaveSeen) {
  LoopClients full(1);
  full.record(answer_to("per-ip:b", true));
  full.record(answer_to("per-ip:a", true));  // takes over b's place: it may have been seen twice
  LoopClients other(1);
  for (int i = 0; i < 5; ++i) other.record(answer_to("per-ip:c", true));
  const auto top = top_clients({&full, &other}, TopBy::requests, 10);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, "c");
  EXPECT_EQ(top[0].count, 7u);
  EXPECT_EQ(top[0].error, 2u);
  EXPECT_EQ(top[1].id, "a");
  EXPECT_EQ(top[1].count, 7u);
  EXPECT_EQ(top[1].error, 6u);
}

}  // namespace
}  // namespace weir::clients_test
