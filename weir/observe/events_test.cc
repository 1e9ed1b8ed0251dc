#include "weir/observe/events.h"

#include <gtest/gtest.h>

#include "weir/identify/handle.h"

#include <memory>
#include <vector>

#include "weir/base/bounds.h"

namespace weir::events_test {
namespace {

Answer answer_to(std::string_view limit, bool allowed) {
  Answer answer;
  answer.verdict.all.push_back(
      Decision{allowed, 10, 4, std::chrono::milliseconds{allowed ? 0 : 500}, std::chrono::seconds{1}});
  answer.labels[0].limit = limit;
  answer.labels[0].id = "acme";
  answer.labels[0].rate.key = "per-tenant:acme";
  answer.now.wall = Wall{std::chrono::milliseconds{1500}};
  return answer;
}

TEST(Events, TellsADecisionAsOneLineOfJson) {
  Events events;
  EXPECT_FALSE(events.wanted());
  const auto queue = *events.subscribe({});
  EXPECT_TRUE(events.wanted());
  events.publish(answer_to("per-tenant", false));
  const EventQueue::Taken taken = queue->take(1 << 20);
  ASSERT_EQ(taken.events.size(), 1u);
  EXPECT_EQ(taken.events[0],
            R"({"time":"1970-01-01T00:00:01.500Z","limit":"per-tenant","id":"acme","identifier":"per-tenant:acme",)"
            R"("allowed":false,"burst":10,"remaining":4,"retry_after":0.5,"reset_after":1,"shadow":false,)"
            R"("source":"limit"})");
  EXPECT_TRUE(queue->take(1 << 20).events.empty());
}

TEST(Events, TellsARateAndItsQuotaAsOneDecisionByTheStricter) {
  Events events;
  const auto queue = *events.subscribe({});
  Answer answer = answer_to("per-tenant", true);
  answer.verdict.all[0] = {answer.verdict.all[0].strictest(), Decision{false, 7, 0, std::chrono::hours{1}, {}}};
  answer.labels[0].quota = {"per-tenant:acme", {}, {}, Source::override};
  events.publish(answer);
  const EventQueue::Taken taken = queue->take(1 << 20);
  ASSERT_EQ(taken.events.size(), 1u);
  EXPECT_NE(taken.events[0].find(R"("allowed":false,"burst":7,"remaining":0,"retry_after":3600,)"), std::string::npos);
  EXPECT_NE(taken.events[0].find(R"("source":"override")"), std::string::npos);
}

TEST(Events, NeverShowsAnApiKeyInFull) {
  Events events;
  const auto queue = *events.subscribe({});
  Answer answer = answer_to("per-apikey", true);
  answer.labels[0].id = "key-abc-123";
  answer.labels[0].key = "apikey";
  answer.labels[0].secret = true;
  events.publish(answer);
  const EventQueue::Taken taken = queue->take(1 << 20);
  ASSERT_EQ(taken.events.size(), 1u);
  EXPECT_EQ(taken.events[0].find("key-abc"), std::string::npos);
  EXPECT_NE(taken.events[0].find("\"identifier\":\"apikey:" + handle_of("", "key-abc-123") + "\""), std::string::npos);
}

TEST(Events, FiltersByLimitAndOutcomeAndTakesASample) {
  Events events;
  const auto denied = *events.subscribe({.limit = "a", .allowed = false});
  const auto sampled = *events.subscribe({.limit = {}, .allowed = {}, .sample = 3});
  for (int i = 0; i < 6; ++i) {
    events.publish(answer_to("a", i % 2 == 0));
    events.publish(answer_to("b", false));
  }
  EXPECT_EQ(denied->take(1 << 20).events.size(), 3u);
  EXPECT_EQ(sampled->take(1 << 20).events.size(), 4u);
}

TEST(Events, DropsWhatFindsNoRoomAndCountsIt) {
  Events events;
  const auto queue = *events.subscribe({});
  std::size_t published = 0;
  for (; published < 5000; ++published) events.publish(answer_to("a", true));
  EventQueue::Taken taken = queue->take(std::size_t{1} << 30);
  std::size_t bytes = 0;
  for (const std::string& event : taken.events) bytes += event.size();
  EXPECT_LE(bytes, bounds::event_queue_bytes_max);
  EXPECT_GT(bytes, bounds::event_queue_bytes_max - 1024) << "the bound is reached, not missed";
  EXPECT_EQ(taken.events.size() + taken.dropped, published);
  EXPECT_EQ(queue->take(1 << 20).dropped, 0u) << "told once";
  events.publish(answer_to("a", true));
  EXPECT_EQ(queue->take(1 << 20).events.size(), 1u) << "room again";
}

TEST(Events, EndsWithTheSubscriberAndTakesNoMoreThanItsBound) {
  Events events;
  std::vector<std::shared_ptr<EventQueue>> all;
  for (std::size_t i = 0; i < bounds::event_subscribers_max; ++i) all.push_back(*events.subscribe({}));
  EXPECT_FALSE(events.subscribe({}));
  all.pop_back();
  EXPECT_TRUE(events.subscribe({}));
  all.clear();
  events.publish(answer_to("a", true));
  EXPECT_FALSE(events.wanted());
}

}  // namespace
}  // namespace weir::events_test
