#include "weir/store/redis/health.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/base/bounds.h"

namespace weir::redis {
namespace {

TEST(Health, TellsEachCauseOfAnOutageOnceUpToABound) {
  std::vector<std::string> log;
  Health health([&](LogLevel, std::string_view line) { log.emplace_back(line); });
  health.joined();
  health.came_up(Time{});
  health.went_down(false, "said too late", Time{});
  health.went_down(true, "closed the connection", Time{});
  health.went_down(false, "closed the connection", Time{});
  health.went_down(false, "WRONGPASS", Time{});
  health.went_down(false, "closed the connection", Time{});
  ASSERT_EQ(log.size(), 3u);
  EXPECT_TRUE(log[1].starts_with("Redis is of no use: closed the connection;")) << log[1];
  EXPECT_EQ(log[2], "Redis is still of no use: WRONGPASS");
  for (std::size_t i = 0; i < 2 * bounds::redis_causes_max; ++i) health.went_down(false, std::to_string(i), Time{});
  EXPECT_EQ(log.size(), 1 + bounds::redis_causes_max);
  health.came_up(Time{});
  // The next outage has causes of its own.
  health.went_down(true, "WRONGPASS", Time{});
  EXPECT_TRUE(log.back().starts_with("Redis is of no use: WRONGPASS;")) << log.back();
}

}  // namespace
}  // namespace weir::redis
