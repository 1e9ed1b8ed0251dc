#include "weir/observe/process.h"

#include <gtest/gtest.h>

namespace weir::process_test {
namespace {

using namespace std::chrono_literals;

TEST(ProcessStats, ReadsTheFieldsOfProc) {
  const ProcessStats stats = process_stats_from(
      "4242 (we) ir) S 1 4242 4242 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 4 0 200 1000000 25 18446744073709551615",
      "cpu  1 2 3\nbtime 1700000000\nprocesses 7\n", 100, 4096);
  EXPECT_EQ(stats.cpu, 2s);
  EXPECT_EQ(stats.virtual_bytes, 1'000'000u);
  EXPECT_EQ(stats.resident_bytes, 25u * 4096);
  EXPECT_EQ(stats.started, Wall{1'700'000'002s});
}

TEST(ProcessStats, IsZeroWhereTheTextIsNotProcs) {
  for (const std::string_view text : {"", ")", "1 (x)", "1 (x) ", "1 (x) S 1"}) {
    const ProcessStats stats = process_stats_from(text, "btime", 100, 4096);
    EXPECT_EQ(stats.cpu, 0s) << text;
    EXPECT_EQ(stats.resident_bytes, 0u) << text;
    EXPECT_EQ(stats.started, Wall{}) << text;
  }
}

TEST(ProcessStats, DescribesThisProcess) {
  const ProcessStats stats = read_process_stats();
  EXPECT_GT(stats.resident_bytes, 0u);
  EXPECT_GE(stats.virtual_bytes, stats.resident_bytes);
  EXPECT_GE(stats.open_fds, 1u);
  EXPECT_GE(stats.max_fds, stats.open_fds);
  EXPECT_GT(stats.started, Wall{1'600'000'000s});
}

}  // namespace
}  // namespace weir::process_test
