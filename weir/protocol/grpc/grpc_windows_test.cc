// What a rule passes over time, in buckets and in windows, and that windows count as envoyproxy/ratelimit's do.
#include <gtest/gtest.h>

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "weir/protocol/grpc/grpc_service_test.h"

namespace weir::grpc_windows_test {
namespace {

using namespace grpc_service_test;
using Status = RateLimitResponse::DescriptorStatus;

class GrpcWindows : public GrpcService {
 protected:
  // How many calls of cost 1 pass, one right after the other.
  int passed(std::string_view key, int calls) {
    int passes = 0;
    for (int i = 0; i < calls; ++i) {
      passes += call(descriptors(entry(key))).overall_code() == RateLimitResponse::OK ? 1 : 0;
    }
    return passes;
  }
  void go_to(Wall wall) { clock_.advance(wall - clock_.now().wall); }
  static std::string contents(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_TRUE(file) << path;
    return text.str();
  }
};

// The trace is what the peer itself answered: testdata/record.py runs its server.
TEST_F(GrpcWindows, FixedWindowsAnswerLikeThePeerForARecordedTraceThatDeniesNothing) {
  const std::string directory = std::string(WEIR_SOURCE_DIR) + "/weir/protocol/grpc/testdata";
  use(contents(directory + "/rules.yaml"), "", "fixed_window");
  std::map<std::string, int> exhausted;                    // by unit
  std::set<std::pair<std::string, std::int64_t>> windows;  // by unit
  std::istringstream trace(contents(directory + "/peer_trace.tsv"));
  int calls = 0;
  for (std::string at, asked, answered;
       std::getline(trace, at, '\t') && std::getline(trace, asked, '\t') && std::getline(trace, answered); ++calls) {
    go_to(Wall{std::chrono::milliseconds{std::stoll(at)}});
    RateLimitResponse peer;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(answered, &peer).ok()) << answered;
    RateLimitResponse ours = call(asked);
    ours.clear_response_headers_to_add();
    ASSERT_EQ(ours.ShortDebugString(), peer.ShortDebugString()) << "call " << calls << ": " << asked;
    for (const auto& status : peer.statuses()) {
      const std::string unit = RateLimitResponse::RateLimit::Unit_Name(status.current_limit().unit());
      exhausted[unit] += status.limit_remaining() == 0 ? 1 : 0;
      windows.emplace(unit, std::stoll(at) / 1000 + status.duration_until_reset().seconds());
    }
  }
  EXPECT_GT(calls, 500);
  for (const char* unit : {"SECOND", "MINUTE", "HOUR", "DAY"}) EXPECT_GT(exhausted[unit], 0) << unit;
  const auto count = [&](const std::string& unit) {
    return std::ranges::count(windows, unit, [](const auto& window) { return window.first; });
  };
  EXPECT_GT(count("SECOND"), 100);
  EXPECT_GE(count("MINUTE"), 3);
  EXPECT_EQ(count("HOUR"), 2) << "an hour ended while it was recorded";
}

TEST_F(GrpcWindows, ADenialTakesNothingFromAWindowEither) {
  use("domain: d\ndescriptors: [{key: ten, rate_limit: {unit: minute, requests_per_unit: 10}}]\n", "", "fixed_window");
  EXPECT_EQ(ask(descriptors(entry("ten"), ",\"hitsAddend\":8")), "OK: OK 2/10 MINUTE 40s");
  EXPECT_EQ(ask(descriptors(entry("ten"), ",\"hitsAddend\":5")), "OVER: OVER 2/10 MINUTE 40s; Retry-After 40");
  EXPECT_EQ(ask(descriptors(entry("ten"), ",\"hitsAddend\":2")), "OK: OK 0/10 MINUTE 40s");
  const std::string look = entry("ten", "x", ",\"hitsAddend\":\"0\"");
  EXPECT_EQ(ask(descriptors(look)), "OVER: OVER 0/10 MINUTE 40s; Retry-After 40") << "nothing is left to look at";
  clock_.advance(40s);
  EXPECT_EQ(ask(descriptors(look)), "OK: OK 10/10 MINUTE 0s");
}

constexpr std::string_view kPerMinute = R"(domain: d
descriptors:
  - {key: ten, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: sixty, rate_limit: {unit: minute, requests_per_unit: 60}}
)";
constexpr std::chrono::sys_seconds kMinuteEnd{std::chrono::seconds{1'700'000'040}};

TEST_F(GrpcWindows, ABucketPassesNoMoreThanItsRateAroundTheEndOfAMinute) {
  use(std::string(kPerMinute));
  go_to(kMinuteEnd - 1s);
  EXPECT_EQ(passed("ten", 100), 10);
  EXPECT_EQ(passed("sixty", 100), 60);
  int more = 0;
  for (int i = 0; i < 20; ++i) {  // to one second after the end
    clock_.advance(100ms);
    EXPECT_EQ(passed("ten", 10), 0);
    more += passed("sixty", 100);
  }
  EXPECT_EQ(more, 2) << "one for each second";
}

TEST_F(GrpcWindows, AWindowPassesTwiceItsLimitThereAsThePeers) {
  use(std::string(kPerMinute), "", "fixed_window");
  go_to(kMinuteEnd - 1s);
  EXPECT_EQ(passed("ten", 100), 10);
  clock_.advance(999ms);
  EXPECT_EQ(passed("ten", 100), 0);
  clock_.advance(1ms);
  EXPECT_EQ(passed("ten", 100), 10);
}

TEST_F(GrpcWindows, APerDayRulePassesItsNumberInAUtcDayByDefault) {
  use("domain: d\ndescriptors: [{key: day, rate_limit: {unit: day, requests_per_unit: 1000}}]\n");
  constexpr std::chrono::sys_seconds kMidnight{std::chrono::days{20'000}};
  go_to(kMidnight);
  EXPECT_EQ(passed("day", 400), 400);
  go_to(kMidnight + std::chrono::hours{12});
  EXPECT_EQ(passed("day", 700), 600) << "what was used in the morning has not come back";
  go_to(kMidnight + std::chrono::days{1} - 1s);
  EXPECT_EQ(ask(descriptors(entry("day"))), "OVER: OVER 0/1000 DAY 1s; Retry-After 1");
  go_to(kMidnight + std::chrono::days{1});
  EXPECT_EQ(passed("day", 1100), 1000);
}

}  // namespace
}  // namespace weir::grpc_windows_test
