#include "weir/observe/metrics.h"

#include <gmock/gmock.h>

namespace weir::metrics_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

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
  answer.verdict.all.push_back(Decision{false, 1, 0, 1s, 1s});
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

TEST(LoopMetrics, CountsALimitWithARateAndAQuotaOnce) {
  LoopMetrics metrics;
  Answer answer;
  answer.verdict.all.push_back({Decision{true, 5, 4, {}, 1s}, Decision{false, 1, 0, 1h, 1h}});
  answer.verdict.allowed = false;
  // As for a tier: its rate has its own bucket.
  answer.labels[0].limit = "daily";
  answer.labels[0].rate.key = "daily~pro:x";
  answer.labels[0].quota.key = "daily:x";
  metrics.record(answer);
  std::size_t limits = 0;
  metrics.visit([&](const LimitCounters& limit) {
    ++limits;
    EXPECT_EQ(limit.allowed.value(), 0u);
    EXPECT_EQ(limit.denied.value(), 1u);
  });
  EXPECT_EQ(limits, 1u);
}

TEST(Exposition, CountsWhatGotAFailurePolicyInsteadOfTheStore) {
  Gauges gauges;
  gauges.store_fallbacks = {1, 2, 3};
  const std::string text = exposition({}, gauges);
  EXPECT_THAT(text, HasSubstr(R"(weir_store_fallback_total{policy="passThrough"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_store_fallback_total{policy="failClosed"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_store_fallback_total{policy="inMemoryFallback"} 3)"));
}

TEST(Exposition, HasEveryConfiguredLimitAtZeroFromTheStart) {
  Gauges gauges;
  gauges.limits = {{"per-ip", "ip"}, {"orders", ""}};
  gauges.blocks_made = {{"orders", 3}};
  const std::string text = exposition({}, gauges);
  EXPECT_THAT(text, HasSubstr(R"(requests_total{limit="per-ip",limiter_type="ip",status="allowed"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(requests_total{limit="orders",limiter_type="",status="denied"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_rate_limit_exceeded_total{limit="per-ip",limiter_type="ip"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_blocks_total{limit="per-ip"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(weir_blocks_total{limit="orders"} 3)"));
}

TEST(Exposition, EscapesTheLabelsThatAreUrls) {
  LoopMetrics loop;
  (void)loop.proxy.route("rest");
  Gauges gauges;
  gauges.backends = {{.backend = R"(http://h/a"b\c)"}};
  EXPECT_THAT(exposition({&loop}, gauges), HasSubstr(R"(weir_backend_up{backend="http://h/a\"b\\c"} 1)"));
}

TEST(Exposition, TellsOfAServiceThatWasNotAskedYet) {
  Gauges gauges;
  EXPECT_THAT(exposition({}, gauges), Not(HasSubstr("weir_external_")));
  gauges.services.services = {{"asked", true}};
  gauges.services.add_configured("asked");
  gauges.services.add_configured("per-tenant");
  const std::string text = exposition({}, gauges);
  EXPECT_THAT(text, HasSubstr("\nweir_external_requests_total{result=\"ok\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_external_service_open{limit=\"asked\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_external_service_open{limit=\"per-tenant\"} 0\n"));
}

TEST(Exposition, TellsOfTheLastReloadAndSnapshot) {
  Gauges gauges;
  gauges.last_reload = Wall{1'700'000'000s};
  gauges.last_reload_ok = false;
  EXPECT_THAT(exposition({}, gauges), Not(HasSubstr("weir_snapshot_age_seconds"))) << "no snapshots are configured";
  gauges.snapshot_age = 2500ms;
  gauges.snapshot_failures = 4;
  const std::string text = exposition({}, gauges);
  EXPECT_THAT(text, HasSubstr("\nweir_config_last_reload_timestamp_seconds 1700000000\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_config_last_reload_successful 0\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_snapshot_age_seconds 2.5\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_snapshot_failures_total 4\n"));
}

TEST(Exposition, TellsWhyTokensWereRejectedAndHowOftenTheKeyFileFailed) {
  Gauges gauges;
  gauges.jwt_rejected = {{"expired", 2}};
  gauges.jwt_key_failures = 3;
  const std::string text = exposition({}, gauges);
  EXPECT_THAT(text, HasSubstr("\nweir_jwt_rejected_total{reason=\"expired\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nweir_jwt_key_failures_total 3\n"));
}

TEST(Exposition, DescribesTheProcess) {
  Gauges gauges;
  gauges.process = {1500ms, 4096, 8192, 7, 1024, Wall{1'700'000'000s}};
  const std::string text = exposition({}, gauges);
  EXPECT_THAT(text, HasSubstr("\nprocess_cpu_seconds_total 1.5\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes 4096\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_virtual_memory_bytes 8192\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_open_fds 7\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_max_fds 1024\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_start_time_seconds 1700000000\n"));
}

}  // namespace
}  // namespace weir::metrics_test
