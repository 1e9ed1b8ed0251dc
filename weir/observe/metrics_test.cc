#include "weir/observe/metrics.h"

#include <gmock/gmock.h>

namespace weir {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Histogram, PutsADurationIntoTheSmallestBoundThatHoldsIt) {
  Histogram histogram;
  histogram.add(1ns);
  histogram.add(1us);
  histogram.add(1us + 1ns);
  histogram.add(2us);
  histogram.add(1h);
  EXPECT_EQ(histogram.count(0), 2u);
  EXPECT_EQ(histogram.count(1), 2u);
  EXPECT_EQ(histogram.count(Histogram::kBuckets - 1), 1u);
}

TEST(Exposition, SumsTheLoopsAndNamesTheKey) {
  LoopMetrics a;
  LoopMetrics b;
  Answer answer;
  answer.verdict.all.push_back({false, 1, 0, 1s, 1s});
  answer.verdict.allowed = false;
  answer.labels[0].limit = "per-ip";
  answer.labels[0].limiter_type = "ip";
  a.record(answer);
  b.record(answer);
  const std::string text = exposition({&a, &b}, {});
  EXPECT_THAT(text, HasSubstr(R"(weir_rate_limit_requests_total{limit="per-ip",limiter_type="ip",status="denied"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_rate_limit_exceeded_total{limit="per-ip",limiter_type="ip"} 2)"));
  EXPECT_THAT(text, HasSubstr("weir_decision_seconds_count{store=\"memory\"} 0"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(Exposition, CountsWhatGotAFailurePolicyInsteadOfTheStore) {
  Gauges gauges;
  gauges.store_fallbacks = {1, 2, 3};
  const std::string text = exposition({}, gauges);
  EXPECT_THAT(text, HasSubstr(R"(weir_store_fallback_total{policy="passThrough"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_store_fallback_total{policy="failClosed"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_store_fallback_total{policy="inMemoryFallback"} 3)"));
}

}  // namespace
}  // namespace weir
