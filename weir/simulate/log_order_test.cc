#include "weir/simulate/log_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::simulate::log_order_test {
namespace {

using namespace std::chrono_literals;

struct Ordered {
  std::string names;
  std::vector<Duration> times;
  std::size_t late = 0;
  std::uint64_t hurried = 0;
};

struct Line {
  Duration time;
  std::string name;
};

Ordered order(const std::vector<Line>& lines, Duration window, Spread spread, Duration resolution = 1s,
              std::size_t bytes_max = 1 << 20) {
  Ordered out;
  LogOrder ordering(
      window, spread,
      [&](Wall time, std::string_view packed) {
        out.names += packed;
        out.times.push_back(time.time_since_epoch());
      },
      bytes_max);
  for (const Line& line : lines) {
    if (!ordering.add(Wall{line.time}, resolution, line.name)) ++out.late;
  }
  ordering.finish();
  out.hurried = ordering.hurried();
  return out;
}

TEST(LogOrder, PutsLinesWithinTheWindowInOrder) {
  const Ordered out = order({{10s, "b"}, {9s, "a"}, {70s, "d"}, {11s, "c"}, {130s, "e"}}, 60s, Spread::none);
  EXPECT_EQ(out.names, "abcde");
  EXPECT_EQ(out.late, 0u);
}

TEST(LogOrder, RefusesALineBeyondTheWindow) {
  const Ordered out = order({{10s, "a"}, {100s, "c"}, {39s, "x"}, {40s, "b"}}, 60s, Spread::none);
  EXPECT_EQ(out.names, "abc");
  EXPECT_EQ(out.late, 1u);
}

TEST(LogOrder, SpreadsLinesOfEqualTimeOverTheResolution) {
  const std::vector<Line> lines{{5s, "a"}, {5s, "b"}, {5s, "c"}, {5s, "d"}, {6s, "e"}};
  EXPECT_EQ(order(lines, 60s, Spread::even).times, (std::vector<Duration>{5s, 5250ms, 5500ms, 5750ms, 6s}));
  EXPECT_EQ(order(lines, 60s, Spread::none).times, (std::vector<Duration>{5s, 5s, 5s, 5s, 6s}));
  EXPECT_EQ(order(lines, 60s, Spread::even, 1ms).times[1], 5s + 250us);
}

TEST(LogOrder, ReleasesLinesEarlyWhenTooManyBytesWait) {
  std::vector<Line> lines;
  for (int i = 0; i < 100; ++i) lines.push_back({1s * i, std::string(100, 'x')});
  const Ordered all = order(lines, 1h, Spread::none, 1s, 100 * 200);
  EXPECT_EQ(all.hurried, 0u);
  const Ordered few = order(lines, 1h, Spread::none, 1s, 2000);
  EXPECT_GT(few.hurried, 0u);
  EXPECT_EQ(few.times.size(), 100u);
}

TEST(LogOrder, JumpsOverAGapOfYears) {
  EXPECT_EQ(order({{10s, "a"}, {std::chrono::hours{24 * 3650}, "b"}}, 60s, Spread::none).names, "ab");
}

}  // namespace
}  // namespace weir::simulate::log_order_test
