#include "weir/server/denial_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "weir/config/parse.h"

namespace weir::denial_watch_test {
namespace {

using namespace std::chrono_literals;

class DenialWatchTest : public testing::Test {
 protected:
  void use(const std::string& block) {
    auto outcome = config::parse(
        "limits:\n"
        "  per-ip: {key: ip, rate: 1/s}\n"
        "  strict: {key: ip, rate: 1/h}\n"
        "  per-key: {key: apikey, rate: 1/s}\n"
        "  secret: {key: apikey, rate: 1/s, hashed: true}\n"
        "  orders: {rate: 1/s}\n"
        "  logins: {rate: 1/s, quota: 100/day, block: {after: 3, within: 1m, for: 5m}}\n"
        "  pages: {key: ip, rate: 1/s, block: {after: 2, for: 5m}}\n"
        "  everyone: {key: global, rate: 1/s}\n"
        "hash_key: k\n"
        "access: {block: " +
            block + "}\n",
        "test.yaml", {});
    policy_ = std::get<config::Loaded>(outcome).policy;
  }

  static Label label(std::string_view limit, std::string_view id, std::string_view key) {
    Label label;
    label.limit = limit;
    label.id = id;
    label.key = key;
    label.rate.interval = 1s;
    return label;
  }

  void deny(std::initializer_list<Label> labels, Duration wait = 1s) {
    Answer answer;
    answer.now = now_;
    answer.verdict.allowed = false;
    answer.verdict.degraded = degraded_;
    for (const Label& one : labels) {
      answer.labels[answer.verdict.all.size()] = one;
      answer.verdict.all.push_back(Decision{false, 1, 0, wait, wait});
    }
    watch_.denied(*policy_, answer);
  }
  // By the rate and by the quota of one limit.
  void deny_both(const Label& label) {
    Answer answer;
    answer.now = now_;
    answer.verdict.allowed = false;
    answer.labels[0] = label;
    answer.verdict.all.push_back({Decision{false, 1, 0, 1s, 1s}, Decision{false, 5, 0, 1h, 1h}});
    watch_.denied(*policy_, answer);
  }
  void deny(std::string_view ip = "192.0.2.1") { deny({label("per-ip", ip, "ip")}); }

  std::vector<AccessEntry> blocked() {
    keeper_.tick(now_.wall);
    return keeper_.entries(AccessEntry::List::deny, now_.wall);
  }
  void wait(Duration time) {
    now_.time += time;
    now_.wall += time;
  }

  Now now_{Time{100s}, Wall{1000s}};
  std::shared_ptr<const Policy> policy_;
  bool degraded_ = false;
  std::string messages_;
  KnownKeeper keeper_{nullptr, [this](std::string_view message) { messages_ += std::string(message) + "\n"; }};
  DenialWatch watch_{keeper_};
};

TEST_F(DenialWatchTest, BlocksAClientAfterTheConfiguredNumberOfDenials) {
  use("{after: 3, within: 1m, for: 10m}");
  deny();
  deny();
  EXPECT_TRUE(blocked().empty());
  deny();
  ASSERT_EQ(blocked().size(), 1u);
  const AccessEntry entry = blocked()[0];
  EXPECT_EQ(entry.ip->print(), "192.0.2.1/32");
  EXPECT_EQ(entry.reason, "automatic block: 3 denials within 1m, the last by per-ip");
  EXPECT_EQ(entry.added_by, "weir");
  EXPECT_EQ(entry.expires, now_.wall + 10min);
  wait(10min);
  EXPECT_TRUE(blocked().empty());
}

TEST_F(DenialWatchTest, CountsOnlyDenialsWithinTheWindow) {
  use("{after: 3, within: 8s, for: 10m}");
  deny();
  deny();
  wait(8s);
  deny();
  EXPECT_TRUE(blocked().empty());
  wait(7s);
  deny();
  deny();
  EXPECT_EQ(blocked().size(), 1u) << "the window slides";
}

TEST_F(DenialWatchTest, CountsEachClientSeparatelyAndRestartsAfterABlock) {
  use("{after: 2, within: 1m, for: 1s}");
  deny("192.0.2.1");
  deny("192.0.2.2");
  EXPECT_TRUE(blocked().empty());
  deny("192.0.2.1");
  EXPECT_EQ(blocked().size(), 1u);
  wait(1s);
  deny("192.0.2.1");
  EXPECT_TRUE(blocked().empty());
}

TEST_F(DenialWatchTest, TimesAlsoCountsWhatTheLimitAllowed) {
  use("{within: 10s, for: 1m, times: 3}");
  for (int i = 0; i < 20; ++i) deny();
  EXPECT_TRUE(blocked().empty()) << "20 denied and at most 10 allowed are 3 times its rate, not more";
  deny();
  EXPECT_EQ(blocked().size(), 1u);
}

TEST_F(DenialWatchTest, CountsOneDenialPerRequestHoweverManyLimitsDenyIt) {
  use("{after: 2, within: 1m, for: 1m}");
  deny({label("per-ip", "192.0.2.1", "ip"), label("strict", "192.0.2.1", "ip")});
  EXPECT_TRUE(blocked().empty());
  deny({label("strict", "192.0.2.1", "ip")});
  EXPECT_EQ(blocked().size(), 1u) << "the client is the same for every limit that counts addresses";
}

TEST_F(DenialWatchTest, BlocksTheClientThatTheLimitCounts) {
  use("{after: 1, within: 1m, for: 1m}");
  deny({label("per-key", "K", "apikey")});
  deny({label("secret", std::string(64, 'a'), "apikey")});
  deny({label("orders", "7", "")});
  deny({label("everyone", "global", "global")});
  deny({label("per-ip", "2001:db8::/64", "ip")});
  const std::vector<AccessEntry> all = blocked();
  ASSERT_EQ(all.size(), 4u) << "a global bucket has no client";
  EXPECT_EQ(all[0].apikey, "K");
  EXPECT_EQ(all[1].ip->print(), "2001:db8::/64");
  EXPECT_EQ(all[2].limit + ":" + all[2].id, "orders:7");
  EXPECT_EQ(all[3].limit, "secret") << "its key is not known";
}

TEST_F(DenialWatchTest, IgnoresShadowDenialsAndImpossibleCosts) {
  use("{after: 1, within: 1m, for: 1m}");
  Label shadow = label("per-ip", "192.0.2.1", "ip");
  shadow.shadow = true;
  deny({shadow});
  deny({label("per-ip", "192.0.2.1", "ip")}, kNever);
  EXPECT_TRUE(blocked().empty());
}

TEST_F(DenialWatchTest, CountsALimitWhoseRateAndQuotaBothDenyOnce) {
  use("{after: 3, within: 1m, for: 1m}");
  for (int i = 0; i < 2; ++i) deny_both(label("per-ip", "192.0.2.1", "ip"));
  EXPECT_TRUE(blocked().empty());
  deny_both(label("per-ip", "192.0.2.1", "ip"));
  EXPECT_EQ(blocked().size(), 1u);
}

TEST_F(DenialWatchTest, BlocksNoOneWithoutARule) {
  use("{within: 1m}");
  for (int i = 0; i < 1000; ++i) deny();
  EXPECT_TRUE(blocked().empty());
}

TEST_F(DenialWatchTest, FullTableEvictsAndCounts) {
  use("{after: 2, within: 1m, for: 1m}");
  for (std::size_t i = 0; i < bounds::denial_counters_max; ++i) deny({label("orders", std::to_string(i), "")});
  EXPECT_GT(watch_.forgotten(), 0u) << "hashes do not fill the table evenly";
  const std::uint64_t before = watch_.forgotten();
  for (std::size_t i = 0; i < bounds::denial_counters_max; ++i) deny({label("orders", "x" + std::to_string(i), "")});
  EXPECT_GT(watch_.forgotten(), before + bounds::denial_counters_max / 2);
  wait(2min);
  const std::uint64_t settled = watch_.forgotten();
  for (std::size_t i = 0; i < 100; ++i) deny({label("orders", "y" + std::to_string(i), "")});
  EXPECT_EQ(watch_.forgotten(), settled) << "evicting an expired counter is not counted";
}

TEST_F(DenialWatchTest, BlockOfALimitCountsOnlyItsDenialsAndBlocksItsId) {
  use("{}");
  for (int i = 0; i < 5; ++i) deny({label("orders", "7", "")});
  deny({label("logins", "7", ""), label("orders", "7", "")});
  deny({label("logins", "8", "")});
  deny({label("logins", "7", "")});
  EXPECT_TRUE(blocked().empty());
  deny({label("logins", "7", "")});
  ASSERT_EQ(blocked().size(), 1u);
  const AccessEntry entry = blocked()[0];
  EXPECT_EQ(entry.limit + ":" + entry.id, "logins:7");
  EXPECT_EQ(entry.reason, "automatic block: 3 denials within 1m by logins");
  EXPECT_EQ(entry.expires, now_.wall + 5min);
  EXPECT_EQ(messages_, "client blocked: client=logins:7 limit=logins denials=3 within=1m for=5m\n");
  EXPECT_EQ(keeper_.blocks_made(), (std::map<std::string, std::uint64_t>{{"logins", 1}}));
}

TEST_F(DenialWatchTest, OneDenialMayBeEnough) {
  use("{after: 1}");
  deny();
  ASSERT_EQ(blocked().size(), 1u);
  EXPECT_EQ(blocked()[0].reason, "automatic block: 1 denial within 1m, the last by per-ip");
}

TEST_F(DenialWatchTest, BlockOfALimitBlocksAnAddressOnlyForThatLimit) {
  use("{}");
  for (int i = 0; i < 2; ++i) deny({label("pages", "192.0.2.1", "ip")});
  ASSERT_EQ(blocked().size(), 1u);
  EXPECT_EQ(blocked()[0].limit + ":" + blocked()[0].id, "pages:192.0.2.1");
  EXPECT_FALSE(blocked()[0].ip.has_value());
}

TEST_F(DenialWatchTest, CountsARateAndAQuotaOfOneLimitAsOneDenial) {
  use("{}");
  for (int i = 0; i < 2; ++i) deny_both(label("logins", "7", ""));
  EXPECT_TRUE(blocked().empty());
}

TEST_F(DenialWatchTest, BlockOfALimitAndBlockOfAccessBothCount) {
  use("{after: 4, within: 1m, for: 1h}");
  for (int i = 0; i < 2; ++i) deny({label("pages", "192.0.2.1", "ip")});
  EXPECT_EQ(blocked().size(), 1u);
  for (int i = 0; i < 2; ++i) deny({label("pages", "192.0.2.1", "ip")});
  EXPECT_EQ(blocked().size(), 2u) << "the address, and the limit's id";
  EXPECT_EQ(keeper_.blocks_made().at("pages"), 2u);
}

TEST_F(DenialWatchTest, ShadowDenialsDegradedAnswersAndImpossibleCostsDoNotCount) {
  use("{after: 2, within: 1m, for: 1h}");
  Label shadow = label("pages", "192.0.2.1", "ip");
  shadow.shadow = true;
  for (int i = 0; i < 9; ++i) {
    deny({shadow});
    deny({label("pages", "192.0.2.1", "ip")}, kNever);
  }
  degraded_ = true;
  for (int i = 0; i < 9; ++i) deny({label("pages", "192.0.2.1", "ip")});
  EXPECT_TRUE(blocked().empty());
  EXPECT_EQ(messages_, "");
}

TEST_F(DenialWatchTest, LogsABlockOnceEvenIfRequestsInFlightRequestItAgain) {
  use("{after: 1, within: 1m, for: 1h}");
  for (int i = 0; i < 5; ++i) deny("192.0.2.1");
  EXPECT_EQ(blocked().size(), 1u);
  EXPECT_EQ(messages_, "client blocked: client=ip:192.0.2.1 limit=per-ip denials=1 within=1m for=1h\n");
  EXPECT_EQ(keeper_.blocks_made().at("per-ip"), 1u);
}

}  // namespace
}  // namespace weir::denial_watch_test
