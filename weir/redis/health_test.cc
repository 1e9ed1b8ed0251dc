#include "weir/redis/health.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"

namespace weir::redis::health_test {
namespace {

TEST(Health, LogsEachCauseOfAnOutageOnceUpToALimit) {
  std::vector<std::string> log;
  Health health([&](LogLevel, std::string_view line) { log.emplace_back(line); });
  health.joined();
  health.came_up(Time{});
  health.went_down(false, "reported too late", Time{});
  health.went_down(true, "closed the connection", Time{});
  health.went_down(false, "closed the connection", Time{});
  health.went_down(false, "WRONGPASS", Time{});
  health.went_down(false, "closed the connection", Time{});
  ASSERT_EQ(log.size(), 3u);
  EXPECT_TRUE(log[1].starts_with("Redis unavailable: closed the connection; applying failure_policy passThrough"))
      << log[1];
  EXPECT_EQ(log[2], "Redis still unavailable: WRONGPASS");
  for (std::size_t i = 0; i < 2 * bounds::redis_causes_max; ++i) health.went_down(false, std::to_string(i), Time{});
  EXPECT_EQ(log.size(), 1 + bounds::redis_causes_max);
  health.came_up(Time{});
  // A new outage starts a new list of causes.
  health.set_failure_policy("failClosed");
  health.went_down(true, "WRONGPASS", Time{});
  EXPECT_TRUE(log.back().starts_with("Redis unavailable: WRONGPASS; applying failure_policy failClosed")) << log.back();
}

TEST(Health, LogsAReplyThatIsNotADecisionOncePerKindAndMinute) {
  using namespace std::chrono_literals;
  std::vector<std::string> log;
  Health health([&](LogLevel, std::string_view line) { log.emplace_back(line); });
  const Time start = Time{} + 1h;
  for (Time now = start; now < start + 60s; now += 100ms) {
    health.log_odd_reply(trouble_of(Refusal::clock), "WEIRCLOCK far off", now);
    health.log_odd_reply(Trouble::malformed, "OK", now);
  }
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(
      log[0],
      "Redis reply is not a decision: kind=clock reply=\"WEIRCLOCK far off\"; applying the failure_policy to such "
      "requests");
  EXPECT_TRUE(log[1].starts_with("Redis reply is not a decision: kind=malformed reply=\"OK\"")) << log[1];
  health.log_odd_reply(trouble_of(Refusal::clock), "WEIRCLOCK far off", start + 60s);
  EXPECT_EQ(log.size(), 3u);
}

TEST(Health, EveryKindHasItsOwnName) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < kTroubles; ++i) words.push_back(print(static_cast<Trouble>(i)));
  EXPECT_EQ(words.front(), "unreachable");
  EXPECT_EQ(words.back(), "other");
  std::ranges::sort(words);
  EXPECT_EQ(std::ranges::adjacent_find(words), words.end());
}

}  // namespace
}  // namespace weir::redis::health_test
