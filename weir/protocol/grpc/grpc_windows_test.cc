// What a rule passes over time, in buckets and in windows, and that windows count as envoyproxy/ratelimit's do.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weir/protocol/grpc/grpc_service_test.h"

namespace weir::grpc_windows_test {
namespace {

using namespace grpc_service_test;
using Status = RateLimitResponse::DescriptorStatus;

// The arithmetic that envoyproxy/ratelimit documents, and no more of it: a counter for each descriptor and window,
// windows at multiples of the unit since 1970, INCRBY first and the comparison after. Its server was not run for this.
class PeerCounters {
 public:
  struct Unit {
    std::string_view name;
    std::int64_t seconds;
    std::uint32_t limit;
  };
  struct Standing {
    std::uint32_t remaining;
    std::int64_t reset_seconds;
    friend bool operator==(const Standing&, const Standing&) = default;
  };

  bool would_deny(const Unit& unit, const std::string& value, std::uint32_t hits, std::int64_t now) {
    return counter(unit, value, now) + hits > unit.limit;
  }
  Standing count(const Unit& unit, const std::string& value, std::uint32_t hits, std::int64_t now) {
    const std::uint32_t after = counter(unit, value, now) += hits;
    return {unit.limit - after, unit.seconds - now % unit.seconds};
  }

 private:
  std::uint32_t& counter(const Unit& unit, const std::string& value, std::int64_t now) {
    return counters_[{std::string(unit.name), value, now / unit.seconds}];
  }

  std::map<std::tuple<std::string, std::string, std::int64_t>, std::uint32_t> counters_;
};

constexpr std::array<PeerCounters::Unit, 7> kUnits = {{{"second", 1, 4},
                                                       {"minute", 60, 9},
                                                       {"hour", 3600, 200},
                                                       {"day", 86400, 2000},
                                                       {"week", 7 * 86400, 9000},
                                                       {"month", 30 * 86400, 30000},
                                                       {"year", 365 * 86400, 300000}}};

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
  void go_to(std::chrono::sys_seconds wall) { clock_.advance(wall - clock_.now().wall); }
};

TEST_F(GrpcWindows, FixedWindowsAnswerLikeThePeerForATraceThatDeniesNothing) {
  std::string rules = "domain: d\ndescriptors:\n";
  for (const PeerCounters::Unit& unit : kUnits) {
    rules += "  - {key: " + std::string(unit.name) + ", rate_limit: {unit: " + std::string(unit.name) +
             ", requests_per_unit: " + std::to_string(unit.limit) + "}}\n";
  }
  use(rules, "", "fixed_window");
  PeerCounters peer;
  std::mt19937 random(22);
  const auto up_to = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % (most + 1)); };
  int exhausted = 0;
  for (int step = 0; step < 4000; ++step) {
    // Mostly a few milliseconds, sometimes days.
    clock_.advance(std::chrono::milliseconds{up_to(400)});
    if (up_to(50) == 0) clock_.advance(std::chrono::seconds{up_to(3 * 86400)});
    const std::int64_t now = std::chrono::floor<std::chrono::seconds>(clock_.now().wall).time_since_epoch().count();
    RateLimitRequest request;
    request.set_domain("d");
    request.set_hits_addend(up_to(3));
    std::vector<PeerCounters::Standing> expected;
    for (const PeerCounters::Unit& unit : kUnits) {
      const std::string value = std::to_string(up_to(2));
      const bool own = up_to(3) == 0;
      const std::uint32_t hits = own ? 1 + up_to(4) : std::max(request.hits_addend(), 1u);
      if (up_to(2) == 0 || peer.would_deny(unit, value, hits, now)) continue;
      auto& descriptor = *request.add_descriptors();
      descriptor.add_entries()->set_key(unit.name.data(), unit.name.size());
      descriptor.mutable_entries(0)->set_value(value);
      if (own) descriptor.mutable_hits_addend()->set_value(hits);
      expected.push_back(peer.count(unit, value, hits, now));
    }
    if (expected.empty()) continue;
    const RateLimitResponse response = call(request);
    ASSERT_EQ(response.overall_code(), RateLimitResponse::OK) << step;
    ASSERT_EQ(response.statuses_size(), static_cast<int>(expected.size()));
    for (int i = 0; i < response.statuses_size(); ++i) {
      const Status& status = response.statuses(i);
      const PeerCounters::Standing& want = expected[static_cast<std::size_t>(i)];
      ASSERT_EQ(status.code(), RateLimitResponse::OK);
      ASSERT_EQ(status.limit_remaining(), want.remaining) << step << " " << request.descriptors(i).ShortDebugString();
      ASSERT_EQ(status.duration_until_reset().seconds(), want.reset_seconds) << step;
      exhausted += want.remaining == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(exhausted, 20) << "the trace also goes to the limits";
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
