#include "weir/admin/live.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "weir/base/bounds.h"

namespace weir::live_test {
namespace {

using admin::LiveNumbers;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::string> taken(EventQueue& queue) {
  return queue.take(1u << 20).events;
}

TEST(LiveNumbers, GivesEverySampleToEveryViewer) {
  LiveNumbers live;
  const auto first = live.subscribe().value();
  const auto second = live.subscribe().value();
  live.publish("{}");
  EXPECT_EQ(taken(*first), std::vector<std::string>{"{}"});
  EXPECT_EQ(taken(*second), std::vector<std::string>{"{}"});
}

TEST(LiveNumbers, OneOfManyViewersScansPerSecond) {
  LiveNumbers live;
  const Time start{seconds{100}};
  int scans = 0;
  for (int second = 0; second < 10; ++second) {
    for (int viewer = 0; viewer < 20; ++viewer) {
      const Time now = start + seconds{second} + milliseconds{viewer};
      if (!live.take_turn(now)) continue;
      ++scans;
      live.publish("{}");
    }
  }
  EXPECT_EQ(scans, 10);
}

// Loops look at their connections once a second, each at another moment.
TEST(LiveNumbers, ViewersThatAskAtAnyMomentMakeNoMoreSamplesThanSeconds) {
  for (const int moments : {1, 2, 3, 10, 11, 100}) {
    LiveNumbers live;
    int scans = 0;
    for (int asked = 0; asked < 60 * moments; ++asked) {
      if (!live.take_turn(Time{seconds{100}} + milliseconds{1000} * asked / moments)) continue;
      ++scans;
      live.publish("{}");
    }
    EXPECT_LE(scans, 61) << moments;
    EXPECT_GE(scans, 55) << moments;
  }
}

TEST(LiveNumbers, SkipsNoSampleIfAViewerAsksALittleEarly) {
  LiveNumbers live;
  const Time start{seconds{100}};
  EXPECT_TRUE(live.take_turn(start));
  live.publish("{}");
  EXPECT_FALSE(live.take_turn(start + LiveNumbers::kEvery - LiveNumbers::kEarly - milliseconds{1}));
  EXPECT_TRUE(live.take_turn(start + LiveNumbers::kEvery - LiveNumbers::kEarly));
}

TEST(LiveNumbers, GivesTheTurnToAnotherIfNothingIsPublished) {
  LiveNumbers live;
  const Time start{seconds{100}};
  EXPECT_TRUE(live.take_turn(start));
  EXPECT_FALSE(live.take_turn(start + LiveNumbers::kTurn - milliseconds{1}));
  EXPECT_TRUE(live.take_turn(start + LiveNumbers::kTurn));
}

TEST(LiveNumbers, HasABoundedNumberOfViewers) {
  LiveNumbers live;
  std::vector<std::shared_ptr<EventQueue>> viewers;
  for (std::size_t i = 0; i < bounds::event_subscribers_max; ++i) viewers.push_back(live.subscribe().value());
  const auto refused = live.subscribe();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::overloaded);
  viewers.pop_back();
  EXPECT_TRUE(live.subscribe()) << "one has left";
}

}  // namespace
}  // namespace weir::live_test
