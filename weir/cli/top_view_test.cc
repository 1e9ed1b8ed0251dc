#include "weir/cli/top_view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "weir/cli/text_width.h"

namespace weir::top_view_test {
namespace {

using cli::ScreenSize;
using cli::TopView;
using Lines = std::vector<std::string>;

constexpr Time kStart{std::chrono::hours{1}};
constexpr Wall kWall{std::chrono::sys_days{std::chrono::year{2026} / 11 / 18} + std::chrono::hours{9}};

cli::Answer top_of(int requests) {
  return *cli::Answer::read(R"({"by":"requests","clients":[{"limit":"per-ip","id":"203.0.113.9","count":)" +
                            std::to_string(requests) +
                            R"(,"error":0},{"limit":"orders","id":"a\u001b[2Jb","count":7,)" + R"("error":3}]})");
}

cli::Answer stats_of(int requests, int denied) {
  return *cli::Answer::read(R"({"uptime_seconds":3661.5,"store":{"kind":"memory","up":true},"totals":{"requests":)" +
                            std::to_string(requests) + R"(,"denied":)" + std::to_string(denied) +
                            R"(,"deny_listed":0}})");
}

// A painter without colors.
class TopViewTest : public testing::Test {
 protected:
  int null_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
  cli::Output painter_{null_};
  TopView view_;
  void TearDown() override { close(null_); }
  Lines lines(ScreenSize size, bool paused = false) const {
    return view_.lines(size, "http://127.0.0.1:9090", "2s", paused, painter_);
  }
};

TEST_F(TopViewTest, FillsTheScreen) {
  view_.take(top_of(1200), stats_of(1300, 13), kStart, kWall);
  EXPECT_EQ(lines({70, 9}), (Lines{"weir top by requests  http://127.0.0.1:9090        every 2s  09:00:00Z",
                                   "1,300 requests, 13 denied (1.0 %); up 1h1m1s, store memory", "",
                                   "LIMIT   ID           REQUESTS  ERROR", "per-ip  203.0.113.9     1,200      0",
                                   "orders  a\\x1b[2Jb           7      3", "", "",
                                   "q quit  r requests  d denied  s shadow denied  space pause"}));
}

TEST_F(TopViewTest, ShowsRatesFromTheSecondLookOn) {
  view_.take(top_of(1200), stats_of(1300, 13), kStart, kWall);
  view_.take(top_of(1205), stats_of(1360, 14), kStart + std::chrono::seconds{2}, kWall + std::chrono::seconds{2});
  const Lines shown = lines({80, 9});
  EXPECT_EQ(shown[1], "1,360 requests (30/s), 14 denied (1.0 %, 0.5/s); up 1h1m1s, store memory");
  EXPECT_EQ(shown[4], "per-ip  203.0.113.9     1,205         2.5      0");
  EXPECT_EQ(shown[5], "orders  a\\x1b[2Jb           7           0      3");
  view_.forget_rates();
  view_.take(top_of(1205), stats_of(1360, 14), kStart + std::chrono::seconds{4}, kWall);
  EXPECT_EQ(lines({80, 9})[3], "LIMIT   ID           REQUESTS  ERROR");
}

TEST_F(TopViewTest, FitsEveryScreen) {
  view_.take(top_of(1200), stats_of(1300, 13), kStart, kWall);
  view_.take(top_of(1205), stats_of(1360, 14), kStart + std::chrono::seconds{2}, kWall);
  for (std::size_t columns = 1; columns < 100; ++columns) {
    for (const std::size_t rows : {1u, 2u, 3u, 5u, 6u, 24u}) {
      const Lines shown = lines({columns, rows}, true);
      EXPECT_EQ(shown.size(), rows);
      // A table of a column that cannot be cut further is left to the terminal, which does not wrap.
      if (columns < 10) continue;
      for (const std::string& line : shown) EXPECT_LE(cli::text_width(line), columns) << line;
    }
  }
}

}  // namespace
}  // namespace weir::top_view_test
